-- Databases that hold somebody's tables; that of the agent last.
select datname as name
  from pg_database
 where datallowconn and not datistemplate
 order by datname = 'postgres', datname
 limit 1000
