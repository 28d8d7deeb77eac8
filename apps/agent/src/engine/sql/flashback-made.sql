-- The name and size of a table.
select n.nspname || '.' || c.relname as name, pg_table_size(c.oid) as bytes
  from pg_class c
  join pg_namespace n on n.oid = c.relnamespace
 where c.oid = $1::oid
