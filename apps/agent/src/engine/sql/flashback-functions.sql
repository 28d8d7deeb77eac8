-- Where the functions of flashback_table are in this database, and which it has: only those that are the module's own code
-- (13 is the language C), whatever else somebody has put beside them.
select e.extversion as version,
       n.nspname as schema,
       quote_ident(n.nspname) as quoted,
       array(select p.proname::text
               from pg_proc p
              where p.pronamespace = e.extnamespace
                and p.prolang = 13
                and p.probin = '$libdir/flashback_table'
                and exists (select from pg_depend d
                             where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e'
                               and d.refclassid = 'pg_extension'::regclass and d.refobjid = e.oid)) as functions
  from pg_extension e
  join pg_namespace n on n.oid = e.extnamespace
 where e.extname = 'flashback_table'
