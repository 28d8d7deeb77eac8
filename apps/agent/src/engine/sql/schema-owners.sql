-- Whether nobody but superusers can create something in a schema. Of pg_database_owner the owner of the database is the only
-- member, and is asked for himself.
select not exists (select from pg_roles r
                    where not r.rolsuper and r.rolname <> 'pg_database_owner'
                      and has_schema_privilege(r.oid, n.oid, 'CREATE')) as superusers_only
  from pg_namespace n
 where n.nspname = $1
