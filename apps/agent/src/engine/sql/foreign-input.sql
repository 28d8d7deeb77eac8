-- $1: oid of a table. Columns whose values would be read by other code than the core's or a superuser's C. By oid: names
-- may have moved to another type since they were looked up.
select a.attname as name
  from pg_attribute a
  join pg_type o on o.oid = a.atttypid
  join pg_type t on t.oid = case when o.typelem <> 0 and o.typinput = 'array_in'::regproc then o.typelem else o.oid end
  left join pg_proc p on p.oid = t.typinput and p.prolang in (12, 13)
  left join pg_roles r on r.oid = p.proowner and r.rolsuper
 where a.attrelid = $1 and a.attnum > 0
   and (r.oid is null
        or not (t.typtype in ('b', 'e') or (t.typtype in ('r', 'm') and t.typnamespace = 'pg_catalog'::regnamespace)))
