-- Where the views of flashback_log are; no row without the extension.
select quote_ident(n.nspname) as schema
  from pg_extension e
  join pg_namespace n on n.oid = e.extnamespace
 where e.extname = 'flashback_log'
