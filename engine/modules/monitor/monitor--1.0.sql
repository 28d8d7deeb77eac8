/* engine/modules/monitor/monitor--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION monitor" to load this file. \quit

CREATE FUNCTION polar_stat_get_wal(
    OUT wal_records int8,
    OUT wal_fpi int8,
    OUT wal_bytes numeric,
    OUT wal_fpi_bytes numeric,
    OUT wal_buffers_full int8,
    OUT stats_reset timestamptz
)
AS 'MODULE_PATHNAME', 'polar_stat_get_wal'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION polar_stat_get_wal() IS 'statistics: WAL generated, with the bytes of full-page images';

CREATE VIEW polar_stat_wal AS
    SELECT w.wal_records, w.wal_fpi, w.wal_bytes, w.wal_fpi_bytes, w.wal_buffers_full, w.stats_reset
    FROM polar_stat_get_wal() w;

COMMENT ON VIEW polar_stat_wal IS 'WAL generated since stats_reset, as pg_stat_wal, with the bytes of full-page images';
COMMENT ON COLUMN polar_stat_wal.wal_bytes IS 'bytes of all WAL records, images included';
COMMENT ON COLUMN polar_stat_wal.wal_fpi_bytes IS 'bytes of full-page images as they stand in WAL: without holes, after compression';

CREATE FUNCTION polar_stat_get_checkpoint(
    OUT running bool,
    OUT kind text,
    OUT reason text,
    OUT phase text,
    OUT started_at timestamptz,
    OUT phase_started_at timestamptz,
    OUT buffers_total int8,
    OUT buffers_processed int8,
    OUT buffers_written int8,
    OUT files_total int8,
    OUT files_processed int8,
    OUT ended_at timestamptz
)
AS 'MODULE_PATHNAME', 'polar_stat_get_checkpoint'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION polar_stat_get_checkpoint() IS 'statistics: progress of the running checkpoint, or the last one since the server was started';

CREATE VIEW polar_stat_checkpoint AS
    SELECT c.running, c.kind, c.reason, c.phase, c.started_at, c.phase_started_at,
           c.buffers_total, c.buffers_processed, c.buffers_written,
           c.files_total, c.files_processed, c.ended_at
    FROM polar_stat_get_checkpoint() c;

COMMENT ON VIEW polar_stat_checkpoint IS 'progress of the running checkpoint or restartpoint, or the last one since the server was started';
COMMENT ON COLUMN polar_stat_checkpoint.reason IS 'in the words of the server log: immediate, force, wait, wal, time, ...';
COMMENT ON COLUMN polar_stat_checkpoint.phase IS 'prepare, write, sync or finish; null when none is running';
COMMENT ON COLUMN polar_stat_checkpoint.buffers_processed IS 'buffers out of buffers_total that are clean now, whoever wrote them';
COMMENT ON COLUMN polar_stat_checkpoint.buffers_written IS 'buffers that the checkpoint itself has written';
COMMENT ON COLUMN polar_stat_checkpoint.ended_at IS 'null while it is running and when it failed';

GRANT SELECT ON polar_stat_wal, polar_stat_checkpoint TO PUBLIC;
