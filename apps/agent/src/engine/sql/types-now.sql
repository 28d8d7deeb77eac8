-- $1: columns as of then, as JSON; for each its type as this database writes it, or null where only its text is safe.
-- What reads values has to be the core's or a superuser's C: no code of a table's owner runs in a session of the agent's.
select w.n,
       case when t.typtype = w.kind and w.arrays <= 1
            then format_type(case when w.arrays = 1 then nullif(t.typarray, 0) else t.oid end, w.typmod) end as type,
       (select quote_ident(c.collname) from pg_collation c
         where c.collnamespace = 'pg_catalog'::regnamespace and c.collname = w."collation"
           and c.collencoding in (-1, (select encoding from pg_database where datname = current_database()))
         limit 1) as collation
  from json_to_recordset($1::json) as w (n int, schema text, type text, kind "char", arrays int, typmod int, labels text[], "collation" text)
  left join (
         pg_type t
         join pg_namespace s on s.oid = t.typnamespace
         join pg_proc p on p.oid = t.typinput and p.prolang in (12, 13)
         join pg_roles r on r.oid = p.proowner and r.rolsuper
       ) on s.nspname = w.schema and t.typname = w.type and t.typisdefined
        and case t.typtype
              when 'b' then (t.typcategory <> 'Z' or t.oid = '"char"'::regtype)
                            and not (s.nspname = 'pg_catalog' and (t.typname like 'reg%' or t.typname = 'aclitem'))
              when 'e' then w.labels is not distinct from
                            (select array_agg(e.enumlabel::text order by e.enumsortorder) from pg_enum e where e.enumtypid = t.oid)
              else t.typtype in ('r', 'm') and s.nspname = 'pg_catalog' end
 order by w.n
