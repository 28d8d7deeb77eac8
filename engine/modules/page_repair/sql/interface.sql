-- What the module shows, and what it refuses. Without sources and with full_page_writes = on nothing is different.
CREATE EXTENSION page_repair;
SHOW polar_page_repair_policy;
SHOW polar_page_repair_sources;
SHOW polar_page_repair_guard;
SELECT name, setting, unit, context FROM pg_settings WHERE name LIKE 'polar\_page\_repair\_%' ORDER BY name;
SELECT state, why, full_page_writes, images_in_force, guard FROM polar_page_repair_status;
SELECT * FROM polar_page_repair_sources;
SELECT recovery, referenced, checked, torn, repaired, last_at FROM polar_stat_page_repair;
SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'page repair guard';
-- the list is understood when it is set
ALTER SYSTEM SET polar_page_repair_sources = 'host=a dbname=b nonsense=c';
ALTER SYSTEM SET polar_page_repair_sources = 'host=a;host=b;host=c;host=d;host=e;host=f;host=g;host=h;host=i';
ALTER SYSTEM SET polar_page_repair_sources = E'host=''a;b'' dbname=x; ;postgresql://c:1/d';
ALTER SYSTEM RESET polar_page_repair_sources;
-- a source that is asked each second cannot be missed after less than two
ALTER SYSTEM SET polar_page_repair_grace = '1s';
-- whoever reads pages reads everything
CREATE ROLE regress_page_repair_nobody;
CREATE ROLE regress_page_repair_reader;
GRANT EXECUTE ON FUNCTION polar_page_repair_read TO regress_page_repair_reader;
SET ROLE regress_page_repair_nobody;
SHOW polar_page_repair_sources;
SELECT timeline FROM polar_page_repair_read('{}', '{}', '{}', '{}', '{}');
-- hosts, ports and roles are for who may monitor; figures are for everybody
SELECT state FROM polar_page_repair_status;
SELECT source FROM polar_page_repair_sources;
SELECT * FROM polar_page_repair_get_sources();
SELECT torn FROM polar_stat_page_repair;
SET ROLE pg_monitor;
SELECT state FROM polar_page_repair_status;
SELECT source FROM polar_page_repair_sources;
SET ROLE regress_page_repair_reader;
SELECT timeline, in_recovery, streaming, data_checksums, start_lsn <= end_lsn, flush_lsn = end_lsn, pages
FROM polar_page_repair_read('{}', '{}', '{}', '{}', '{}');
RESET ROLE;
DROP OWNED BY regress_page_repair_reader;
DROP ROLE regress_page_repair_nobody, regress_page_repair_reader;
-- a page from the pool, one from the file, one beyond the end, one of no relation
CREATE TABLE served AS SELECT g AS a FROM generate_series(1, 1000) g;
CHECKPOINT;
SELECT t.oid AS spc, d.oid AS db, pg_relation_filenode('served') AS rel
FROM pg_database d JOIN pg_tablespace t ON t.oid = d.dattablespace WHERE datname = current_database() \gset
SELECT length(pages[1]) AS first, length(pages[2]) AS last, pages[3] IS NULL AS beyond, pages[4] IS NULL AS none
FROM polar_page_repair_read(ARRAY[:spc, :spc, :spc, :spc]::oid[], ARRAY[:db, :db, :db, :db]::oid[],
                            ARRAY[:rel, :rel, :rel, 1]::oid[], '{0,0,0,0}', '{0,4,99999,0}');
SELECT pages[1] = pg_read_binary_file(pg_relation_filepath('served'), 0, 8192) AS as_the_file
FROM polar_page_repair_read(ARRAY[:spc]::oid[], ARRAY[:db]::oid[], ARRAY[:rel]::oid[], '{0}', '{0}');
-- serving loads nothing into the pool
CREATE EXTENSION pg_buffercache;
SELECT buffers_evicted > 0 AS evicted FROM pg_buffercache_evict_relation('served');
SELECT length(pages[1]) AS from_file FROM polar_page_repair_read(ARRAY[:spc]::oid[], ARRAY[:db]::oid[], ARRAY[:rel]::oid[], '{0}', '{1}');
SELECT count(*) FROM pg_buffercache WHERE relfilenode = :rel AND reldatabase = :db;
DROP EXTENSION pg_buffercache;
-- wrong questions
SELECT pages FROM polar_page_repair_read('{1}', '{1}', '{1}', '{0}', '{}');
SELECT pages FROM polar_page_repair_read('{1}', '{1}', '{1}', '{0}', '{NULL}');
SELECT pages FROM polar_page_repair_read('{1}', '{1}', '{1}', '{4}', '{0}');
SELECT pages FROM polar_page_repair_read('{1}', '{1}', '{1}', '{0}', '{-1}');
SELECT pages FROM polar_page_repair_read('{1664}', '{1}', '{1260}', '{0}', '{0}');
SELECT pages FROM polar_page_repair_read(array_fill(1::oid, '{1025}'), array_fill(1::oid, '{1025}'), array_fill(1::oid, '{1025}'),
                                         array_fill(0, '{1025}'), array_fill(0::int8, '{1025}'));
DROP TABLE served;
DROP EXTENSION page_repair;
-- an extension of before shows what it did, and can be updated
CREATE EXTENSION page_repair VERSION '1.0';
SELECT recovery, repaired, last_at FROM polar_stat_page_repair;
ALTER EXTENSION page_repair UPDATE;
SELECT recovery, repaired, last_at, log_pages, log_kept, log_why FROM polar_stat_page_repair;
SELECT has_table_privilege('pg_monitor', 'polar_page_repair_sources', 'SELECT'), has_table_privilege('public', 'polar_stat_page_repair', 'SELECT');
DROP EXTENSION page_repair;
