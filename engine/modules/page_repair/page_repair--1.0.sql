/* engine/modules/page_repair/page_repair--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION page_repair" to load this file. \quit

-- In pg_catalog, so that who asks for pages need not know, or trust, a search path.
CREATE FUNCTION pg_catalog.polar_page_repair_read(
    tablespaces oid[],
    databases oid[],
    relations oid[],
    forks int4[],
    blocks int8[],
    OUT system_identifier int8,
    OUT timeline int4,
    OUT in_recovery bool,
    OUT streaming bool,
    OUT data_checksums bool,
    OUT start_lsn pg_lsn,
    OUT end_lsn pg_lsn,
    OUT flush_lsn pg_lsn,
    OUT pages bytea[]
)
AS 'MODULE_PATHNAME', 'polar_page_repair_read'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION pg_catalog.polar_page_repair_read(oid[], oid[], oid[], int4[], int8[]) IS
    'pages of up to 1024 blocks with all changes up to start_lsn: null = there is no such block, empty = it cannot be read';

-- Whoever may call this can read every page of the cluster.
REVOKE ALL ON FUNCTION pg_catalog.polar_page_repair_read(oid[], oid[], oid[], int4[], int8[]) FROM PUBLIC;

CREATE FUNCTION polar_page_repair_get_status(
    OUT state text,
    OUT since timestamptz,
    OUT why text,
    OUT full_page_writes bool,
    OUT images_in_force bool,
    OUT guard bool
)
AS 'MODULE_PATHNAME', 'polar_page_repair_get_status'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION polar_page_repair_get_status() IS 'what protects this instance against torn pages';

CREATE VIEW polar_page_repair_status AS
    SELECT s.state, s.since, s.why, s.full_page_writes, s.images_in_force, s.guard
    FROM polar_page_repair_get_status() s;

COMMENT ON VIEW polar_page_repair_status IS 'what protects this instance against torn pages';
COMMENT ON COLUMN polar_page_repair_status.state IS 'full_page_writes, protected (by a source), exposed, or overridden (the guard is off)';
COMMENT ON COLUMN polar_page_repair_status.since IS 'when the state became this one';
COMMENT ON COLUMN polar_page_repair_status.why IS 'the reason for the state, in words';
COMMENT ON COLUMN polar_page_repair_status.full_page_writes IS 'the setting';
COMMENT ON COLUMN polar_page_repair_status.images_in_force IS 'whether images are written, whatever the setting; null in recovery';

CREATE FUNCTION polar_page_repair_get_sources(
    OUT number int4,
    OUT source text,
    OUT healthy bool,
    OUT why text,
    OUT flush_lsn pg_lsn,
    OUT replay_lsn pg_lsn,
    OUT checked_at timestamptz,
    OUT pages int8,
    OUT bytes int8,
    OUT last_at timestamptz
)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'polar_page_repair_get_sources'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION polar_page_repair_get_sources() IS 'the page repair sources, as last seen';

CREATE VIEW polar_page_repair_sources AS
    SELECT s.number, s.source, s.healthy, s.why, s.flush_lsn, s.replay_lsn, s.checked_at, s.pages, s.bytes, s.last_at
    FROM polar_page_repair_get_sources() s;

COMMENT ON VIEW polar_page_repair_sources IS 'the page repair sources in the order of polar_page_repair_sources, as last seen';
COMMENT ON COLUMN polar_page_repair_sources.source IS 'host:port/database of the connection string';
COMMENT ON COLUMN polar_page_repair_sources.why IS 'why it is not healthy';
COMMENT ON COLUMN polar_page_repair_sources.pages IS 'given in the last recovery';
COMMENT ON COLUMN polar_page_repair_sources.bytes IS 'given in the last recovery';
COMMENT ON COLUMN polar_page_repair_sources.last_at IS 'when it gave the last page in the last recovery';

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
    OUT last_at timestamptz
)
AS 'MODULE_PATHNAME', 'polar_stat_get_page_repair'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION polar_stat_get_page_repair() IS 'statistics: page repair in the recovery since the server was started';

CREATE VIEW polar_stat_page_repair AS
    SELECT s.recovery, s.policy, s.started_at, s.ended_at, s.redo_lsn, s.end_lsn, s.referenced, s.checked, s.torn,
           s.repaired, s.missing, s.vm_initialized, s.fsm_reset, s.bytes, s.scan_ms, s.check_ms, s.fetch_ms, s.last_at
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

-- Hosts, ports, and what libpq says of roles and databases are not for everybody; the figures are.
REVOKE ALL ON FUNCTION polar_page_repair_get_status(), polar_page_repair_get_sources() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION polar_page_repair_get_status(), polar_page_repair_get_sources() TO pg_monitor;
GRANT SELECT ON polar_page_repair_status, polar_page_repair_sources TO pg_monitor;
GRANT SELECT ON polar_stat_page_repair TO PUBLIC;
