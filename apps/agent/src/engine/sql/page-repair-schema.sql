-- Where the views of page_repair are; no row without the extension.
select quote_ident(n.nspname) as schema
  from pg_extension e
  join pg_namespace n on n.oid = e.extnamespace
 where e.extname = 'page_repair'
