-- Where the objects of each extension are.
select e.extname as extension, quote_ident(n.nspname) as schema
  from pg_extension e
  join pg_namespace n on n.oid = e.extnamespace
