/* engine/modules/flashback_table/flashback_table--1.1--1.2.sql */

-- complain if script is sourced in psql, rather than via ALTER EXTENSION
\echo Use "ALTER EXTENSION flashback_table UPDATE TO '1.2'" to load this file. \quit

-- A call without workers still means the function of 1.0.
CREATE FUNCTION polar_flashback_table(
    relation regclass,
    target_time timestamptz,
    workers int4,
    result_name name DEFAULT NULL,
    result_schema name DEFAULT NULL,
    with_indexes bool DEFAULT false,
    condition text DEFAULT NULL,
    OUT result regclass,
    OUT rows int8,
    OUT target_lsn pg_lsn,
    OUT point int8
)
AS 'MODULE_PATHNAME', 'polar_flashback_table_workers'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION polar_flashback_table(regclass, timestamptz, int4, name, name, bool, text) IS
    'makes a table with the rows that a table had at a moment, with so many parallel workers';
