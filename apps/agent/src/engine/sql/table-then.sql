-- psql variables: schema, name. Each column with the type that is left when domains and arrays are taken off.
with recursive t as (
  select c.oid, c.relkind, c.relpersistence, c.relowner, c.relnatts
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
   where n.nspname = :'schema' and c.relname = :'name'
), layer as (
  select a.attnum, 0 as depth, a.atttypid as type, a.atttypmod as typmod, 0 as arrays, array[]::text[] as domains
    from pg_attribute a join t on a.attrelid = t.oid
   where a.attnum > 0 and not a.attisdropped
  union all
  select l.attnum, l.depth + 1,
         case when y.typtype = 'd' then y.typbasetype else y.typelem end,
         case when y.typtype = 'd' and l.typmod < 0 then y.typtypmod else l.typmod end,
         l.arrays + (y.typtype <> 'd')::int,
         case when y.typtype = 'd' then l.domains || y.oid::regtype::text else l.domains end
    from layer l join pg_type y on y.oid = l.type
   where y.typtype = 'd' or (y.typelem <> 0 and y.typinput = 'array_in'::regproc)
), inner_type as (
  select distinct on (attnum) * from layer order by attnum, depth desc
)
select json_build_object(
  'kind', t.relkind,
  'persistence', t.relpersistence,
  'attributes', t.relnatts,
  'owner', pg_get_userbyid(t.relowner),
  'bytes', (select coalesce(sum(pg_table_size(relid)), 0) from pg_partition_tree(t.oid))
           + case when t.relkind in ('r', 'm') and not exists (select from pg_partition_tree(t.oid)) then pg_table_size(t.oid) else 0 end,
  'columns', (
    select coalesce(json_agg(json_build_object(
        'name', a.attname,
        'declared', format_type(a.atttypid, a.atttypmod),
        'domains', i.domains,
        'arrays', i.arrays,
        'schema', n.nspname,
        'type', y.typname,
        'kind', y.typtype,
        'typmod', i.typmod,
        'labels', (select json_agg(e.enumlabel order by e.enumsortorder) from pg_enum e where e.enumtypid = y.oid),
        'collation', case when a.attcollation <> 0 and a.attcollation <> y.typcollation
                          then (select o.collname from pg_collation o
                                 where o.oid = a.attcollation and o.collnamespace = 'pg_catalog'::regnamespace) end
      ) order by a.attnum), '[]')
      from inner_type i
      join pg_attribute a on a.attrelid = t.oid and a.attnum = i.attnum
      join pg_type y on y.oid = i.type
      join pg_namespace n on n.oid = y.typnamespace
  ))
from t;
