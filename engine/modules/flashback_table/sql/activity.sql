-- what WAL says of tables
SET client_min_messages = warning;
CREATE FUNCTION activity(from_lsn pg_lsn, least_rows int8 DEFAULT 100)
  RETURNS TABLE (kind text, relation text, inserted int8, updated int8, deleted int8) LANGUAGE sql AS
$$SELECT kind, coalesce((SELECT oid::regclass::text FROM pg_class WHERE oid = a.relation), 'gone'), inserted, updated, deleted
  FROM public.polar_flashback_activity(from_lsn, least_rows => least_rows) a WHERE kind <> 'end'$$;
SELECT pg_current_wal_insert_lsn() AS l \gset
CREATE TABLE t (id int PRIMARY KEY, v text);
INSERT INTO t SELECT i, 'x' FROM generate_series(1, 500) i;
UPDATE t SET v = 'y' WHERE id <= 200;
-- subtransactions, of which one is rolled back
BEGIN;
DELETE FROM t WHERE id <= 50;
SAVEPOINT a;
DELETE FROM t WHERE id <= 100;
SAVEPOINT b;
DELETE FROM t WHERE id <= 150;
RELEASE b;
RELEASE a;
SAVEPOINT c;
DELETE FROM t;
ROLLBACK TO c;
COMMIT;
BEGIN;
DELETE FROM t;
ROLLBACK;
-- all at once; less than is asked for; twice in one transaction
COPY t FROM PROGRAM 'seq 1001 1400 | sed s/$/,x/' (FORMAT csv);
DELETE FROM t WHERE id = 200;
BEGIN;
INSERT INTO t SELECT i FROM generate_series(2001, 2099) i;
UPDATE t SET v = 'z' WHERE id = 300;
COMMIT;
-- what is taken back while it is inserted does not count
INSERT INTO t SELECT i % 150 + 3001 FROM generate_series(1, 300) i ON CONFLICT DO NOTHING;
SELECT * FROM activity(:'l');
SELECT * FROM activity(:'l', 400);

-- definitions; neither VACUUM nor ANALYZE is one
SELECT pg_current_wal_insert_lsn() AS l \gset
ALTER TABLE t ADD c int;
CREATE INDEX ON t (v);
GRANT SELECT ON t TO PUBLIC;
DELETE FROM t WHERE id > 150;
VACUUM t;
ANALYZE t;
SELECT * FROM activity(:'l');

-- other files: what was in those before is known
SELECT pg_current_wal_insert_lsn() AS l \gset
INSERT INTO t SELECT i FROM generate_series(4001, 4100) i;
VACUUM FULL t;
INSERT INTO t SELECT i FROM generate_series(5001, 5200) i;
TRUNCATE t;
INSERT INTO t SELECT i FROM generate_series(1, 300) i;
ALTER TABLE t ALTER id TYPE int8;
UPDATE t SET c = 1;
REINDEX TABLE t;
CLUSTER t USING t_pkey;
BEGIN;
TRUNCATE t;
INSERT INTO t SELECT i FROM generate_series(1, 300) i;
COMMIT;
SELECT * FROM activity(:'l');

-- those that are gone
SELECT pg_current_wal_insert_lsn() AS l \gset
CREATE TABLE gone (id int PRIMARY KEY, v text);
INSERT INTO gone SELECT i FROM generate_series(1, 150) i;
SELECT 'gone'::regclass::oid AS gone \gset
DROP TABLE gone;
CREATE TABLE kept (id int, v text);
CREATE INDEX kept_id ON kept (id);
DROP INDEX kept_id;
CREATE TEMP TABLE temporary (id int, v text);
INSERT INTO temporary SELECT 1 FROM generate_series(1, 200);
DROP TABLE temporary;
CREATE TABLE made AS SELECT i FROM generate_series(1, 200) i;
CREATE VIEW seen AS SELECT * FROM made;
DROP VIEW seen;
SELECT * FROM activity(:'l');
SELECT count(*) FROM polar_flashback_activity(:'l', least_rows => 100) WHERE relation = :gone AND kind IN ('change', 'drop');
DROP TABLE kept, made;

-- a prepared transaction counts when it is committed; the caller goes on before it
SELECT pg_current_wal_insert_lsn() AS l \gset
BEGIN;
DELETE FROM t WHERE id <= 120;
PREPARE TRANSACTION 'activity';
UPDATE t SET c = 3 WHERE id > 180;
SELECT * FROM activity(:'l');
SELECT lsn AS go_on FROM polar_flashback_activity(:'l', least_rows => 100) WHERE kind = 'end' \gset
SELECT count(*) FROM polar_flashback_activity(:'l', least_rows => 1000) WHERE kind = 'last' AND relation = 't'::regclass;
COMMIT PREPARED 'activity';
SELECT * FROM activity(:'go_on');

-- partitions
SELECT pg_current_wal_insert_lsn() AS l \gset
CREATE TABLE parted (id int) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (1000);
INSERT INTO parted SELECT generate_series(1, 300);
ALTER TABLE parted ADD x int;
SELECT * FROM activity(:'l');
DROP TABLE parted, t;

-- where to go on
SELECT lsn, at IS NULL AS nothing FROM polar_flashback_activity(pg_current_wal_insert_lsn()) WHERE lsn <> pg_current_wal_insert_lsn();
SELECT kind, lsn <= pg_current_wal_insert_lsn() AS sane FROM polar_flashback_activity('FFFFFFFF/FFFFFFFF');
SELECT kind, lsn > '0/1000000' AS sane FROM polar_flashback_activity('0/0', 1);
SELECT count(*) > 0 AS some FROM polar_flashback_activity(max_wal_bytes => 9223372036854775807, least_rows => 9223372036854775807);
SELECT polar_flashback_activity(max_wal_bytes => 0);
SELECT polar_flashback_activity(least_rows => 0);
SELECT polar_flashback_activity(max_wal_bytes => NULL);
CREATE ROLE regress_activity;
SET ROLE regress_activity;
SELECT polar_flashback_activity();
RESET ROLE;
GRANT pg_monitor TO regress_activity;
SET ROLE regress_activity;
SELECT count(*) > 0 AS some FROM polar_flashback_activity();
RESET ROLE;
DROP ROLE regress_activity;
DROP FUNCTION activity;
