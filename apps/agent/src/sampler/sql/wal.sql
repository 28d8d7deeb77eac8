-- WAL generated.
select wal_records::float8 as wal_records,
       wal_fpi::float8 as wal_fpi,
       wal_bytes::float8 as wal_bytes,
       wal_buffers_full::float8 as wal_buffers_full,
       extract(epoch from stats_reset)::float8 as wal_reset
  from pg_stat_wal
