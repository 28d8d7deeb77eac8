-- Transactions that run now, each with what a person finds it by. Whoever makes a file holds a virtual transaction's lock
-- before it does so; a prepared transaction no longer has one.
SELECT l.virtualxid || ' process ' || l.pid
FROM pg_catalog.pg_locks l
WHERE l.locktype = 'virtualxid' AND l.granted AND l.pid <> pg_catalog.pg_backend_pid()
UNION ALL
SELECT 'prepared ' || p.transaction
FROM pg_catalog.pg_prepared_xacts p
