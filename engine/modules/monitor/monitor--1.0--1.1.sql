/* engine/modules/monitor/monitor--1.0--1.1.sql */

-- complain if script is sourced in psql, rather than via ALTER EXTENSION
\echo Use "ALTER EXTENSION monitor UPDATE TO '1.1'" to load this file. \quit

DROP VIEW polar_stat_wal;
DROP FUNCTION polar_stat_get_wal();

CREATE FUNCTION polar_stat_get_wal(
    OUT wal_records int8,
    OUT wal_fpi int8,
    OUT wal_bytes numeric,
    OUT wal_fpi_bytes numeric,
    OUT wal_buffers_full int8,
    OUT stats_reset timestamptz,
    OUT wal_fpi_omitted int8,
    OUT wal_fpi_omitted_bytes numeric
)
AS 'MODULE_PATHNAME', 'polar_stat_get_wal_1_1'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION polar_stat_get_wal() IS 'statistics: WAL generated, with the full-page images in it and those left out';

CREATE VIEW polar_stat_wal AS
    SELECT w.wal_records, w.wal_fpi, w.wal_bytes, w.wal_fpi_bytes, w.wal_buffers_full, w.stats_reset,
           w.wal_fpi_omitted, w.wal_fpi_omitted_bytes
    FROM polar_stat_get_wal() w;

COMMENT ON VIEW polar_stat_wal IS 'WAL generated since stats_reset, as pg_stat_wal, with the bytes of full-page images';
COMMENT ON COLUMN polar_stat_wal.wal_bytes IS 'bytes of all WAL records, images included';
COMMENT ON COLUMN polar_stat_wal.wal_fpi_bytes IS 'bytes of full-page images as they stand in WAL: without holes, after compression';
COMMENT ON COLUMN polar_stat_wal.wal_fpi_omitted IS 'full-page images left out because full-page writes were off';
COMMENT ON COLUMN polar_stat_wal.wal_fpi_omitted_bytes IS 'bytes that these would have taken: without holes, before compression';

GRANT SELECT ON polar_stat_wal TO PUBLIC;
