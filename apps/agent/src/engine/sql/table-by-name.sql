-- The number of a table by its schema ($1) and name ($2).
select c.oid
  from pg_class c
  join pg_namespace n on n.oid = c.relnamespace
 where n.nspname = $1 and c.relname = $2
