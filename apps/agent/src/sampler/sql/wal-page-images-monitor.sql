-- Bytes of full-page images in the WAL, as the module monitor counts them.
select wal_fpi_bytes::float8 as wal_fpi_bytes,
       extract(epoch from stats_reset)::float8 as wal_fpi_reset
  from polar_stat_wal
