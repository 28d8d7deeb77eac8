-- WAL generated, as the module monitor counts it: with the bytes of full-page images, and the WAL of parallel workers once.
select wal_records::float8 as wal_records,
       wal_fpi::float8 as wal_fpi,
       wal_bytes::float8 as wal_bytes,
       wal_buffers_full::float8 as wal_buffers_full,
       extract(epoch from stats_reset)::float8 as wal_reset,
       wal_fpi_bytes::float8 as wal_fpi_bytes,
       extract(epoch from stats_reset)::float8 as wal_fpi_reset
  from polar_stat_wal
