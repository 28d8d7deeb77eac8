-- What the views look like, and that anybody may read them.
CREATE EXTENSION monitor;
\d polar_stat_wal
\d polar_stat_checkpoint

-- An extension says what it installs.
\dx+ monitor

CREATE ROLE regress_monitor_reader;
SET ROLE regress_monitor_reader;
SELECT wal_records > 0 AS records, wal_bytes > wal_fpi_bytes AS rest, wal_fpi_bytes >= 0 AS images,
       wal_fpi >= 0 AND wal_buffers_full >= 0 AS counts, stats_reset <= now() AS reset
  FROM polar_stat_wal;
SELECT count(*) FROM polar_stat_checkpoint;
-- Only who may reset pg_stat_wal may reset this.
SELECT pg_stat_reset_shared('wal');
RESET ROLE;

-- Within a transaction the counters keep to stats_fetch_consistency, in step with pg_stat_wal.
BEGIN;
SET LOCAL stats_fetch_consistency = snapshot;
SELECT wal_bytes AS bytes, wal_fpi_bytes AS fpi_bytes FROM polar_stat_wal \gset
CREATE TABLE written AS SELECT generate_series(1, 10000) AS a;
SELECT wal_bytes = :bytes AND wal_fpi_bytes = :fpi_bytes AS stands FROM polar_stat_wal;
SELECT p.stats_reset = s.stats_reset AS same FROM polar_stat_wal p, pg_stat_wal s;
COMMIT;
SELECT pg_stat_force_next_flush();
SELECT wal_bytes > :bytes AS moves FROM polar_stat_wal;

-- It can be moved, dropped and made again; the counters do not belong to it.
CREATE SCHEMA elsewhere;
ALTER EXTENSION monitor SET SCHEMA elsewhere;
SELECT wal_bytes > :bytes AS moved FROM elsewhere.polar_stat_wal;
DROP EXTENSION monitor;
CREATE EXTENSION monitor;
SELECT wal_bytes > :bytes AS kept FROM polar_stat_wal;

CHECKPOINT;
SELECT kind, buffers_processed = buffers_total AS written, files_processed = files_total AS synced
  FROM polar_stat_checkpoint;

DROP TABLE written;
DROP EXTENSION monitor;
DROP SCHEMA elsewhere;
DROP ROLE regress_monitor_reader;
