/* engine/modules/flashback_table/flashback_table--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION flashback_table" to load this file. \quit

CREATE FUNCTION polar_flashback_rows(
    relation anyelement,
    target_time timestamptz,
    condition text DEFAULT NULL
)
RETURNS SETOF anyelement
AS 'MODULE_PATHNAME', 'polar_flashback_rows'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION polar_flashback_rows(anyelement, timestamptz, text) IS
    'the rows of a table, given as NULL::table, of transactions that committed until a moment';

CREATE FUNCTION polar_flashback_count(
    relation regclass,
    target_time timestamptz,
    condition text DEFAULT NULL
)
RETURNS int8
AS 'MODULE_PATHNAME', 'polar_flashback_count'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION polar_flashback_count(regclass, timestamptz, text) IS
    'how many rows a table had at a moment';

CREATE FUNCTION polar_flashback_table(
    relation regclass,
    target_time timestamptz,
    result_name name DEFAULT NULL,
    result_schema name DEFAULT NULL,
    with_indexes bool DEFAULT false,
    condition text DEFAULT NULL,
    OUT result regclass,
    OUT rows int8,
    OUT target_lsn pg_lsn,
    OUT point int8
)
AS 'MODULE_PATHNAME', 'polar_flashback_table'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION polar_flashback_table(regclass, timestamptz, name, name, bool, text) IS
    'makes a table with the rows that a table had at a moment';

CREATE FUNCTION polar_flashback_check(
    relation regclass,
    target_time timestamptz,
    OUT possible bool,
    OUT reason text,
    OUT hint text,
    OUT nearest_time timestamptz,
    OUT point int8,
    OUT target_lsn pg_lsn,
    OUT wal_bytes int8,
    OUT pages int8
)
AS 'MODULE_PATHNAME', 'polar_flashback_check'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION polar_flashback_check(regclass, timestamptz) IS
    'whether a table can be read as it was at a moment, and what that takes';

CREATE FUNCTION polar_flashback_visible_rows(
    relation anyelement,
    target_time timestamptz,
    condition text DEFAULT NULL
)
RETURNS SETOF anyelement
AS 'MODULE_PATHNAME', 'polar_flashback_visible_rows'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION polar_flashback_visible_rows(anyelement, timestamptz, text) IS
    'the rows of a table at a moment that its present privileges and policies let the caller select';

-- Rows reappear that were deleted: who may see them is decided by granting it.
REVOKE ALL ON FUNCTION polar_flashback_visible_rows(anyelement, timestamptz, text) FROM PUBLIC;

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
    OUT indexes_done int4
)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'polar_stat_get_progress_flashback_table'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION polar_stat_get_progress_flashback_table() IS 'statistics: progress of running flashbacks';

CREATE VIEW polar_stat_progress_flashback_table AS
    SELECT s.pid, s.datid, d.datname, s.relid, s.target_time, s.started_at, s.phase,
           s.wal_bytes_total, s.wal_bytes_done, s.blocks_total, s.blocks_done, s.blocks_rebuilt, s.rows,
           s.partitions_total, s.partitions_done, s.indexes_total, s.indexes_done
    FROM polar_stat_get_progress_flashback_table() s
         LEFT JOIN pg_catalog.pg_database d ON s.datid OPERATOR(pg_catalog.=) d.oid;

COMMENT ON VIEW polar_stat_progress_flashback_table IS 'progress of running flashbacks';
COMMENT ON COLUMN polar_stat_progress_flashback_table.target_time IS 'the moment whose rows are read';
COMMENT ON COLUMN polar_stat_progress_flashback_table.wal_bytes_total IS 'WAL of the present pass';
COMMENT ON COLUMN polar_stat_progress_flashback_table.blocks_total IS 'blocks of the relation that is being read';
COMMENT ON COLUMN polar_stat_progress_flashback_table.blocks_rebuilt IS 'blocks that had changed since';
COMMENT ON COLUMN polar_stat_progress_flashback_table.rows IS 'rows found';

GRANT SELECT ON polar_stat_progress_flashback_table TO PUBLIC;
