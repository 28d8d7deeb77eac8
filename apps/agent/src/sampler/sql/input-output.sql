-- I/O of all processes by kind. Null where a kind of process never does that kind of I/O counts as nothing.
select coalesce(sum(read_bytes) filter (where relation), 0)::float8 as io_read_bytes,
       coalesce(sum(write_bytes) filter (where relation), 0)::float8 as io_write_bytes,
       coalesce(sum(extend_bytes) filter (where relation), 0)::float8 as io_extend_bytes,
       coalesce(sum(reads) filter (where relation), 0)::float8 as io_reads,
       coalesce(sum(writes) filter (where relation), 0)::float8 as io_writes,
       coalesce(sum(extends) filter (where relation), 0)::float8 as io_extends,
       coalesce(sum(fsyncs) filter (where relation), 0)::float8 as io_fsyncs,
       coalesce(sum(read_bytes) filter (where relation and context = 'normal'), 0)::float8 as io_read_bytes_normal,
       coalesce(sum(read_bytes) filter (where relation and context = 'bulkread'), 0)::float8 as io_read_bytes_bulkread,
       coalesce(sum(read_bytes) filter (where relation and context = 'vacuum'), 0)::float8 as io_read_bytes_vacuum,
       coalesce(sum(read_bytes) filter (where relation and context = 'bulkwrite'), 0)::float8 as io_read_bytes_bulkwrite,
       coalesce(sum(write_bytes) filter (where relation and backend_type = 'client backend'), 0)::float8
         as io_write_bytes_client,
       coalesce(sum(write_bytes) filter (where relation and backend_type = 'checkpointer'), 0)::float8
         as io_write_bytes_checkpointer,
       coalesce(sum(write_bytes) filter (where relation and backend_type = 'background writer'), 0)::float8
         as io_write_bytes_background_writer,
       coalesce(sum(write_bytes) filter (where relation and backend_type not in
         ('client backend', 'checkpointer', 'background writer')), 0)::float8 as io_write_bytes_other,
       coalesce(sum(write_bytes) filter (where object = 'wal'), 0)::float8 as io_wal_write_bytes,
       coalesce(sum(fsyncs) filter (where object = 'wal'), 0)::float8 as io_wal_fsyncs,
       extract(epoch from max(stats_reset))::float8 as io_reset
  from (select *, object = 'relation' as relation from pg_stat_io) io
