/* engine/modules/flashback_log/flashback_log--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION flashback_log" to load this file. \quit

CREATE FUNCTION polar_stat_get_flashback_log(
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
    OUT recycled_bytes int8
)
AS 'MODULE_PATHNAME', 'polar_stat_get_flashback_log'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION polar_stat_get_flashback_log() IS 'statistics: the flashback log and its window';

CREATE VIEW polar_stat_flashback_log AS
    SELECT s.state, s.mode, s.oldest_time, s.oldest_lsn, s.oldest_redo_lsn, s.newest_point_time, s.points,
           s.window_began, s.windows_ended, s.last_ended_at, s.last_end_reason, s.size_bytes, s.bytes_per_second,
           s.looks, s.images, s.zero_pages, s.unreadable, s.image_bytes, s.written_bytes, s.capture_ms,
           s.syncs, s.sync_ms, s.failures, s.recycled_files, s.recycled_bytes
    FROM polar_stat_get_flashback_log() s;

COMMENT ON VIEW polar_stat_flashback_log IS 'the flashback log and its window, which reaches from oldest_time to now';
COMMENT ON COLUMN polar_stat_flashback_log.state IS 'off, waiting (for the first point of a window) or on';
COMMENT ON COLUMN polar_stat_flashback_log.oldest_time IS 'time of the oldest point; null while there is none';
COMMENT ON COLUMN polar_stat_flashback_log.oldest_lsn IS 'pages can be rebuilt as of this position and later';
COMMENT ON COLUMN polar_stat_flashback_log.oldest_redo_lsn IS 'WAL is needed from this position on';
COMMENT ON COLUMN polar_stat_flashback_log.window_began IS 'when the log became complete';
COMMENT ON COLUMN polar_stat_flashback_log.windows_ended IS 'how often earlier windows, or parts of one, were lost';
COMMENT ON COLUMN polar_stat_flashback_log.last_end_reason IS 'why the last one was';
COMMENT ON COLUMN polar_stat_flashback_log.size_bytes IS 'space that its segments take';
COMMENT ON COLUMN polar_stat_flashback_log.bytes_per_second IS 'growth between the last two points';
COMMENT ON COLUMN polar_stat_flashback_log.looks IS 'blocks whose old content was read';
COMMENT ON COLUMN polar_stat_flashback_log.images IS 'pages kept';
COMMENT ON COLUMN polar_stat_flashback_log.zero_pages IS 'blocks that held nothing but zeroes, which need no image';
COMMENT ON COLUMN polar_stat_flashback_log.unreadable IS 'blocks that did not verify or could not be read';
COMMENT ON COLUMN polar_stat_flashback_log.image_bytes IS 'bytes of pages kept, before compression';
COMMENT ON COLUMN polar_stat_flashback_log.written_bytes IS 'bytes written to the log';
COMMENT ON COLUMN polar_stat_flashback_log.capture_ms IS 'time for reading, compressing and writing';
COMMENT ON COLUMN polar_stat_flashback_log.sync_ms IS 'time that processes waited for the log to be durable';
COMMENT ON COLUMN polar_stat_flashback_log.failures IS 'how often a page could not be kept';
COMMENT ON COLUMN polar_stat_flashback_log.recycled_files IS 'files of deleted relations that are kept';
COMMENT ON COLUMN polar_stat_flashback_log.recycled_bytes IS 'space that these take';

CREATE FUNCTION polar_flashback_log_get_points(
    OUT number int8,
    OUT "time" timestamptz,
    OUT lsn pg_lsn,
    OUT redo_lsn pg_lsn,
    OUT timeline int4,
    OUT log_position pg_lsn,
    OUT next_xid xid8,
    OUT oldest_xid xid,
    OUT oldest_multi xid
)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'polar_flashback_log_get_points'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION polar_flashback_log_get_points() IS 'the points of the flashback log';

CREATE VIEW polar_flashback_points AS
    SELECT p.number, p."time", p.lsn, p.redo_lsn, p.timeline, p.log_position, p.next_xid, p.oldest_xid, p.oldest_multi
    FROM polar_flashback_log_get_points() p;

COMMENT ON VIEW polar_flashback_points IS 'moments that pages can be rebuilt from, oldest first';
COMMENT ON COLUMN polar_flashback_points.lsn IS 'pages on disk had no change after this position';
COMMENT ON COLUMN polar_flashback_points.redo_lsn IS 'and all before this one';
COMMENT ON COLUMN polar_flashback_points.log_position IS 'images from here on belong to it';

CREATE FUNCTION polar_flashback_log_get_images(
    point int8,
    OUT tablespace oid,
    OUT database oid,
    OUT relfilenode oid,
    OUT images int8,
    OUT unreadable int8
)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'polar_flashback_log_get_images'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION polar_flashback_log_get_images(int8) IS 'how many images the flashback log has since a point, by relation';

CREATE FUNCTION polar_flashback_log_page(relation regclass, block int8, point int8)
RETURNS bytea
AS 'MODULE_PATHNAME', 'polar_flashback_log_page'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION polar_flashback_log_page(regclass, int8, int8) IS 'the first image of a block since a point; null if it was not overwritten, or held nothing';

CREATE FUNCTION polar_flashback_log_verify(
    OUT segment text,
    OUT records int8,
    OUT bytes int8,
    OUT indexed bool,
    OUT damage text
)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'polar_flashback_log_verify'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION polar_flashback_log_verify() IS 'reads the whole flashback log; damage is null for a segment that is as it was written';

CREATE FUNCTION polar_flashback_log_get_recycled(
    OUT tablespace oid,
    OUT database oid,
    OUT relfilenode oid,
    OUT dropped_at timestamptz,
    OUT commit_lsn pg_lsn,
    OUT size_bytes int8,
    OUT restorable_since timestamptz
)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'polar_flashback_log_get_recycled'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION polar_flashback_log_get_recycled() IS 'the kept files of deleted relations';

CREATE VIEW polar_flashback_recycled AS
    SELECT r.tablespace, r.database, r.relfilenode, r.dropped_at, r.commit_lsn, r.size_bytes, r.restorable_since
    FROM polar_flashback_log_get_recycled() r;

COMMENT ON VIEW polar_flashback_recycled IS 'files of relations that were dropped, truncated or rewritten, kept for flashback, oldest first';
COMMENT ON COLUMN polar_flashback_recycled.dropped_at IS 'when the transaction that deleted it committed';
COMMENT ON COLUMN polar_flashback_recycled.commit_lsn IS 'it can be read as of positions before this one';
COMMENT ON COLUMN polar_flashback_recycled.restorable_since IS 'and from this time on; null while no point needs it';

CREATE FUNCTION polar_flashback_purge(relation regclass)
RETURNS int4
AS 'MODULE_PATHNAME', 'polar_flashback_purge'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION polar_flashback_purge(regclass) IS 'at once and for good, nothing of a table, as it is stored now, can be read from before; returns how many kept files were removed';

CREATE FUNCTION polar_flashback_purge(tablespace oid, database oid, relfilenode oid)
RETURNS int4
AS 'MODULE_PATHNAME', 'polar_flashback_purge_file'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION polar_flashback_purge(oid, oid, oid) IS 'the same for a file, such as one of polar_flashback_recycled';

-- Old pages hold what has been deleted.
REVOKE ALL ON FUNCTION polar_flashback_log_get_images(int8), polar_flashback_log_page(regclass, int8, int8),
    polar_flashback_log_verify() FROM PUBLIC;
REVOKE ALL ON FUNCTION polar_stat_get_flashback_log(), polar_flashback_log_get_points() FROM PUBLIC;
REVOKE ALL ON FUNCTION polar_flashback_log_get_recycled(), polar_flashback_purge(regclass), polar_flashback_purge(oid, oid, oid)
    FROM PUBLIC;
GRANT EXECUTE ON FUNCTION polar_stat_get_flashback_log(), polar_flashback_log_get_points(), polar_flashback_log_get_recycled()
    TO pg_monitor;
GRANT SELECT ON polar_stat_flashback_log, polar_flashback_points, polar_flashback_recycled TO pg_monitor;
