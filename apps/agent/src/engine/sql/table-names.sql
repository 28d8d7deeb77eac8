-- The names of relations by their numbers.
select c.oid, n.nspname || '.' || c.relname as name
  from pg_class c
  join pg_namespace n on n.oid = c.relnamespace
 where c.oid = any ($1::oid[])
