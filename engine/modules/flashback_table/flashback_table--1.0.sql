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
