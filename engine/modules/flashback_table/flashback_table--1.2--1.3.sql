/* engine/modules/flashback_table/flashback_table--1.2--1.3.sql */

-- complain if script is sourced in psql, rather than via ALTER EXTENSION
\echo Use "ALTER EXTENSION flashback_table UPDATE TO '1.3'" to load this file. \quit

-- A name of its own: another polar_flashback_visible_rows() would make a GRANT without arguments ambiguous.
CREATE FUNCTION polar_flashback_visible_columns(
    relation anyelement,
    target_time timestamptz,
    columns name[],
    condition text DEFAULT NULL
)
RETURNS SETOF anyelement
AS 'MODULE_PATHNAME', 'polar_flashback_visible_columns'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION polar_flashback_visible_columns(anyelement, timestamptz, name[], text) IS
    'the rows of a table at a moment that its present policies let the caller select, with the named columns; the others are null';

-- Rows reappear that were deleted: who may see them is decided by granting it.
REVOKE ALL ON FUNCTION polar_flashback_visible_columns(anyelement, timestamptz, name[], text) FROM PUBLIC;
