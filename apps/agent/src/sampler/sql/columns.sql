-- Columns of the statistics views this engine has. Views outside pg_catalog count only when an extension of the engine's own
-- modules owns them: anybody could make a view of that name and have it read by a superuser. $1: names of views.
select c.relname as view, quote_ident(n.nspname) as schema, array_agg(a.attname::text) as columns
  from pg_class c
  join pg_namespace n on n.oid = c.relnamespace
  join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
 where c.relkind = 'v'
   and c.relname = any ($1)
   and (n.nspname = 'pg_catalog'
        or exists (select 1
                     from pg_depend d
                     join pg_extension e on e.oid = d.refobjid and e.extname in ('monitor', 'shared_server')
                    where d.classid = 'pg_class'::regclass and d.objid = c.oid
                      and d.refclassid = 'pg_extension'::regclass and d.deptype = 'e'))
 group by 1, 2
