/* engine/modules/flashback_log/flashback_log--1.1--1.2.sql */

-- complain if script is sourced in psql, rather than via ALTER EXTENSION
\echo Use "ALTER EXTENSION flashback_log UPDATE TO '1.2'" to load this file. \quit

-- The view gets columns at its end, so what depends on it stays: the function
-- takes the name of the one of before when the view no longer needs that.
CREATE FUNCTION polar_stat_get_flashback_log_1_2(
    OUT state text,
    OUT mode text,
    OUT oldest_time timestamptz,
    OUT oldest_lsn pg_lsn,
    OUT oldest_redo_lsn pg_lsn,
    OUT newest_point_time timestamptz,
    OUT points int4,
    OUT window_began timestamptz,
    OUT windows_ended int8,
    OUT last_ended_at timestamptz,
    OUT last_end_reason text,
    OUT size_bytes int8,
    OUT bytes_per_second float8,
    OUT looks int8,
    OUT images int8,
    OUT zero_pages int8,
    OUT unreadable int8,
    OUT image_bytes int8,
    OUT written_bytes int8,
    OUT capture_ms float8,
    OUT syncs int8,
    OUT sync_ms float8,
    OUT failures int8,
    OUT recycled_files int8,
    OUT recycled_bytes int8,
    OUT newest_time timestamptz,
    OUT shortened int8,
    OUT last_shortened_at timestamptz,
    OUT last_shortened_reason text
)
AS 'MODULE_PATHNAME', 'polar_stat_get_flashback_log'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

CREATE OR REPLACE VIEW polar_stat_flashback_log AS
    SELECT s.state, s.mode, s.oldest_time, s.oldest_lsn, s.oldest_redo_lsn, s.newest_point_time, s.points,
           s.window_began, s.windows_ended, s.last_ended_at, s.last_end_reason, s.size_bytes, s.bytes_per_second,
           s.looks, s.images, s.zero_pages, s.unreadable, s.image_bytes, s.written_bytes, s.capture_ms,
           s.syncs, s.sync_ms, s.failures, s.recycled_files, s.recycled_bytes,
           s.newest_time, s.shortened, s.last_shortened_at, s.last_shortened_reason
    FROM polar_stat_get_flashback_log_1_2() s;

DROP FUNCTION polar_stat_get_flashback_log();
ALTER FUNCTION polar_stat_get_flashback_log_1_2() RENAME TO polar_stat_get_flashback_log;

COMMENT ON FUNCTION polar_stat_get_flashback_log() IS 'statistics: the flashback log and its window';
COMMENT ON VIEW polar_stat_flashback_log IS 'the flashback log and its window, which reaches from oldest_time to newest_time';
COMMENT ON COLUMN polar_stat_flashback_log.newest_time IS 'the newest moment that can be gone back to: now, or on a standby just before the last commit that was replayed; null while there is none';
COMMENT ON COLUMN polar_stat_flashback_log.shortened IS 'how often the oldest points or kept files were given up before their time, since the server was started';
COMMENT ON COLUMN polar_stat_flashback_log.last_shortened_reason IS 'why they were';

REVOKE ALL ON FUNCTION polar_stat_get_flashback_log() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION polar_stat_get_flashback_log() TO pg_monitor;

COMMENT ON FUNCTION polar_flashback_purge(regclass) IS 'at once and for good, nothing of a table and its partitions, whatever files they had, can be read from before; also of one that was dropped, by its OID; returns how many kept files were removed';
