-- What synchronous_commit is set to for databases and roles; names in both columns: a role in a database.
select d.datname as database, r.rolname as role, substr(c.line, length('synchronous_commit=') + 1) as "commitMode"
  from pg_db_role_setting s
 cross join lateral unnest(s.setconfig) as c (line)
  left join pg_database d on d.oid = s.setdatabase
  left join pg_roles r on r.oid = s.setrole
 where starts_with(lower(c.line), 'synchronous_commit=')
 order by d.datname nulls first, r.rolname nulls first
