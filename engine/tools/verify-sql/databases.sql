-- The databases; datconnlimit is -2 from the start of DROP DATABASE on.
SELECT oid, CASE WHEN datconnlimit = -2 THEN 'invalid' WHEN datallowconn THEN 'open' ELSE 'closed' END, datname
FROM pg_catalog.pg_database
