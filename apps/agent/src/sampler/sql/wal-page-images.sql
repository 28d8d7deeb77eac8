-- Bytes of full-page images in the WAL, as PostgreSQL 19 counts them.
select wal_fpi_bytes::float8 as wal_fpi_bytes,
       extract(epoch from stats_reset)::float8 as wal_fpi_reset
  from pg_stat_wal
