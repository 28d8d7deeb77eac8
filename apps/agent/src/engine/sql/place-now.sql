-- $1 schema, $2 the table, $3 name of the result, $4 the owner of then or null
select n.oid as schema,
       t.oid as "tableNow", t.relowner as "ownerNow",
       (select r.oid from pg_roles r where r.rolname = $4) as "ownerThen",
       exists (select from pg_class c where c.relnamespace = n.oid and c.relname = $3)
       or exists (select from pg_type t where t.typnamespace = n.oid and t.typname = $3) as taken
  from pg_namespace n
  left join pg_class t on t.relnamespace = n.oid and t.relname = $2 and t.relkind in ('r', 'p', 'm')
 where n.nspname = $1 and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
