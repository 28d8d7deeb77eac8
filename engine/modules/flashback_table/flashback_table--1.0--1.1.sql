/* engine/modules/flashback_table/flashback_table--1.0--1.1.sql */

-- complain if script is sourced in psql, rather than via ALTER EXTENSION
\echo Use "ALTER EXTENSION flashback_table UPDATE TO '1.1'" to load this file. \quit

DROP VIEW polar_stat_progress_flashback_table;
DROP FUNCTION polar_stat_get_progress_flashback_table();

CREATE FUNCTION polar_stat_get_progress_flashback_table(
    OUT pid int4,
    OUT datid oid,
    OUT relid oid,
    OUT target_time timestamptz,
    OUT started_at timestamptz,
    OUT phase text,
    OUT wal_bytes_total int8,
    OUT wal_bytes_done int8,
    OUT blocks_total int8,
    OUT blocks_done int8,
    OUT blocks_rebuilt int8,
    OUT rows int8,
    OUT partitions_total int4,
    OUT partitions_done int4,
    OUT indexes_total int4,
    OUT indexes_done int4,
    OUT bytes_written int8
)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'polar_stat_get_progress_flashback_table'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION polar_stat_get_progress_flashback_table() IS 'statistics: progress of running flashbacks';

CREATE VIEW polar_stat_progress_flashback_table AS
    SELECT s.pid, s.datid, d.datname, s.relid, s.target_time, s.started_at, s.phase,
           s.wal_bytes_total, s.wal_bytes_done, s.blocks_total, s.blocks_done, s.blocks_rebuilt, s.rows,
           s.partitions_total, s.partitions_done, s.indexes_total, s.indexes_done, s.bytes_written
    FROM polar_stat_get_progress_flashback_table() s
         LEFT JOIN pg_catalog.pg_database d ON s.datid OPERATOR(pg_catalog.=) d.oid;

COMMENT ON VIEW polar_stat_progress_flashback_table IS 'progress of running flashbacks';
COMMENT ON COLUMN polar_stat_progress_flashback_table.target_time IS 'the moment whose rows are read';
COMMENT ON COLUMN polar_stat_progress_flashback_table.wal_bytes_total IS 'WAL of the present pass';
COMMENT ON COLUMN polar_stat_progress_flashback_table.blocks_total IS 'blocks of the relation that is being read';
COMMENT ON COLUMN polar_stat_progress_flashback_table.blocks_rebuilt IS 'blocks that had changed since';
COMMENT ON COLUMN polar_stat_progress_flashback_table.rows IS 'rows found';
COMMENT ON COLUMN polar_stat_progress_flashback_table.bytes_written IS 'pages of the result that were written, 0 if rows are inserted';

GRANT SELECT ON polar_stat_progress_flashback_table TO PUBLIC;

CREATE FUNCTION polar_flashback_results(
    OUT result oid,
    OUT schema_name text,
    OUT result_name text,
    OUT owner text,
    OUT relation oid,
    OUT relation_schema text,
    OUT relation_name text,
    OUT target_time timestamptz,
    OUT size_bytes int8
)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'polar_flashback_results'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION polar_flashback_results() IS
    'tables of the caller that flashbacks made; relation is null if it was dropped, size_bytes if the table is locked';

CREATE FUNCTION polar_flashback_compare(
    relation regclass,
    target_time timestamptz DEFAULT NULL,
    result regclass DEFAULT NULL,
    samples int4 DEFAULT 50,
    OUT kind text,
    OUT rows int8,
    OUT key text[],
    OUT row_then text[],
    OUT row_now text[]
)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'polar_flashback_compare'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION polar_flashback_compare(regclass, timestamptz, regclass, int4) IS
    'how the rows of a moment, or of the result of a flashback, differ from those of now';

CREATE FUNCTION polar_flashback_merge(
    result regclass,
    relation regclass,
    insert_missing bool,
    restore_changed bool,
    delete_added bool,
    keys text[] DEFAULT NULL,
    condition text DEFAULT NULL,
    expected_inserted int8 DEFAULT NULL,
    expected_restored int8 DEFAULT NULL,
    expected_deleted int8 DEFAULT NULL,
    dry_run bool DEFAULT false,
    OUT inserted int8,
    OUT restored int8,
    OUT deleted int8,
    OUT conflicts int8,
    OUT conflict_example text
)
AS 'MODULE_PATHNAME', 'polar_flashback_merge'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION polar_flashback_merge(regclass, regclass, bool, bool, bool, text[], text, int8, int8, int8, bool) IS
    'puts rows of the result of a flashback back into its table; a dry run takes back all but what sequences gave out';

CREATE FUNCTION polar_flashback_swap(
    result regclass,
    relation regclass,
    OUT rows_before int8,
    OUT rows_now int8
)
AS 'MODULE_PATHNAME', 'polar_flashback_swap'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION polar_flashback_swap(regclass, regclass) IS
    'gives a table the rows of a result of a flashback, and the result those of the table';

CREATE FUNCTION polar_flashback_csv(
    relation regclass,
    condition text DEFAULT NULL
)
RETURNS SETOF text
AS 'MODULE_PATHNAME', 'polar_flashback_csv'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION polar_flashback_csv(regclass, text) IS
    'the rows of a table as CSV with a header, in pieces; call it in a target list, so that nothing is collected';

CREATE FUNCTION polar_flashback_dropped(
    OUT relation oid,
    OUT schema_name text,
    OUT relation_name text,
    OUT owner text,
    OUT kind text,
    OUT at timestamptz,
    OUT lsn pg_lsn,
    OUT size_bytes int8,
    OUT restorable_since timestamptz,
    OUT definition text
)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'polar_flashback_dropped'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION polar_flashback_dropped() IS
    'tables that were dropped, truncated or rewritten and whose files of before are kept, newest first';

CREATE FUNCTION polar_flashback_before_drop(
    relation oid,
    lsn pg_lsn,
    result_name name DEFAULT NULL,
    result_schema name DEFAULT NULL,
    condition text DEFAULT NULL,
    OUT result regclass,
    OUT rows int8,
    OUT target_lsn pg_lsn,
    OUT point int8
)
AS 'MODULE_PATHNAME', 'polar_flashback_before_drop'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION polar_flashback_before_drop(oid, pg_lsn, name, name, text) IS
    'makes a table with the rows that a table had before the commit that dropped, truncated or rewrote it';

CREATE FUNCTION polar_flashback_activity(
    from_lsn pg_lsn DEFAULT NULL,
    max_wal_bytes int8 DEFAULT 1073741824,
    least_rows int8 DEFAULT 1000,
    OUT kind text,
    OUT at timestamptz,
    OUT lsn pg_lsn,
    OUT xid xid,
    OUT relation oid,
    OUT inserted int8,
    OUT updated int8,
    OUT deleted int8
)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'polar_flashback_activity'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION polar_flashback_activity(pg_lsn, int8, int8) IS
    'what transactions did to the tables of this database, by the WAL from a position on; its last row says where to go on';
