/* engine/modules/flashback_log/flashback_log--1.0--1.1.sql */

-- complain if script is sourced in psql, rather than via ALTER EXTENSION
\echo Use "ALTER EXTENSION flashback_log UPDATE TO '1.1'" to load this file. \quit

CREATE FUNCTION polar_flashback_log_sample(
    OUT pages int4,
    OUT page_bytes float8,
    OUT image_bytes float8
)
AS 'MODULE_PATHNAME', 'polar_flashback_log_sample'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION polar_flashback_log_sample() IS 'what an image takes in the flashback log, from pages on disk that have changed in shared buffers, or were changed last: how many pages, their mean size without the hole, and the mean size of their records; also while the log is off';

-- Sizes tell nothing of what the pages hold.
REVOKE ALL ON FUNCTION polar_flashback_log_sample() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION polar_flashback_log_sample() TO pg_monitor;
