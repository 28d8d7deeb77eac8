/* engine/modules/page_repair/page_repair--1.0--1.1.sql */

-- complain if script is sourced in psql, rather than via ALTER EXTENSION
\echo Use "ALTER EXTENSION page_repair UPDATE TO '1.1'" to load this file. \quit

DROP VIEW polar_stat_page_repair;
DROP FUNCTION polar_stat_get_page_repair();

CREATE FUNCTION polar_stat_get_page_repair(
    OUT recovery text,
    OUT policy text,
    OUT started_at timestamptz,
    OUT ended_at timestamptz,
    OUT redo_lsn pg_lsn,
    OUT end_lsn pg_lsn,
    OUT referenced int8,
    OUT checked int8,
    OUT torn int8,
    OUT repaired int8,
    OUT missing int8,
    OUT vm_initialized int8,
    OUT fsm_reset int8,
    OUT bytes int8,
    OUT scan_ms float8,
    OUT check_ms float8,
    OUT fetch_ms float8,
    OUT last_at timestamptz,
    OUT log_pages int8,
    OUT log_kept int8,
    OUT log_why text
)
AS 'MODULE_PATHNAME', 'polar_stat_get_page_repair'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION polar_stat_get_page_repair() IS 'statistics: page repair in the recovery since the server was started';

CREATE VIEW polar_stat_page_repair AS
    SELECT s.recovery, s.policy, s.started_at, s.ended_at, s.redo_lsn, s.end_lsn, s.referenced, s.checked, s.torn,
           s.repaired, s.missing, s.vm_initialized, s.fsm_reset, s.bytes, s.scan_ms, s.check_ms, s.fetch_ms, s.last_at,
           s.log_pages, s.log_kept, s.log_why
    FROM polar_stat_get_page_repair() s;

COMMENT ON VIEW polar_stat_page_repair IS 'page repair in the recovery since the server was started';
COMMENT ON COLUMN polar_stat_page_repair.recovery IS 'crash or standby; null when there was nothing to look at';
COMMENT ON COLUMN polar_stat_page_repair.referenced IS 'blocks that WAL from redo_lsn to end_lsn names';
COMMENT ON COLUMN polar_stat_page_repair.checked IS 'blocks that were read and verified';
COMMENT ON COLUMN polar_stat_page_repair.torn IS 'of these, blocks that did not verify';
COMMENT ON COLUMN polar_stat_page_repair.repaired IS 'blocks replaced by a page of a source';
COMMENT ON COLUMN polar_stat_page_repair.missing IS 'blocks zeroed because the source had dropped them';
COMMENT ON COLUMN polar_stat_page_repair.vm_initialized IS 'torn pages of visibility maps, all bits cleared';
COMMENT ON COLUMN polar_stat_page_repair.fsm_reset IS 'torn pages of free space maps, zeroed';
COMMENT ON COLUMN polar_stat_page_repair.bytes IS 'bytes of pages that sources sent';
COMMENT ON COLUMN polar_stat_page_repair.scan_ms IS 'milliseconds for reading WAL ahead';
COMMENT ON COLUMN polar_stat_page_repair.check_ms IS 'milliseconds for reading and verifying blocks';
COMMENT ON COLUMN polar_stat_page_repair.fetch_ms IS 'milliseconds for getting and writing pages';
COMMENT ON COLUMN polar_stat_page_repair.log_pages IS 'of repaired, blocks replaced by a page of the flashback log';
COMMENT ON COLUMN polar_stat_page_repair.log_kept IS 'blocks left as they are, because they have not been written since the point of the flashback log';
COMMENT ON COLUMN polar_stat_page_repair.log_why IS 'why the flashback log gave no pages, or not all; null when it did, or was not asked';

GRANT SELECT ON polar_stat_page_repair TO PUBLIC;

COMMENT ON COLUMN polar_page_repair_status.state IS 'full_page_writes, protected (by the flashback log or a source), exposed, or overridden (the guard is off)';
COMMENT ON VIEW polar_page_repair_sources IS 'the page repair sources in the order in which they are asked, as last seen';
COMMENT ON COLUMN polar_page_repair_sources.number IS 'place in polar_page_repair_sources; 0 is the flashback log';
COMMENT ON COLUMN polar_page_repair_sources.source IS 'host:port/database of the connection string, or flashback log';
