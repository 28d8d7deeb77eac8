-- Counters of the whole instance, under postgres_exporter's names where it has them.
select c.num_timed::float8 as pg_stat_checkpointer_num_timed,
       c.num_requested::float8 as pg_stat_checkpointer_num_requested,
       c.restartpoints_timed::float8 as pg_stat_checkpointer_restartpoints_timed,
       c.restartpoints_req::float8 as pg_stat_checkpointer_restartpoints_req,
       c.restartpoints_done::float8 as pg_stat_checkpointer_restartpoints_done,
       c.write_time::float8 as pg_stat_checkpointer_write_time,
       c.sync_time::float8 as pg_stat_checkpointer_sync_time,
       c.buffers_written::float8 as pg_stat_checkpointer_buffers_written,
       b.buffers_clean::float8 as pg_stat_bgwriter_buffers_clean,
       b.maxwritten_clean::float8 as pg_stat_bgwriter_maxwritten_clean,
       b.buffers_alloc::float8 as pg_stat_bgwriter_buffers_alloc,
       w.wal_records::float8 as pg_stat_wal_records,
       w.wal_fpi::float8 as pg_stat_wal_fpi,
       w.wal_bytes::float8 as pg_stat_wal_bytes,
       w.wal_buffers_full::float8 as pg_stat_wal_buffers_full,
       pg_stat_force_next_flush() is null as flushed
  from pg_stat_checkpointer c cross join pg_stat_bgwriter b cross join pg_stat_wal w
 -- touches a relation, so that the flush has something to do and this transaction is counted now
 cross join (select from pg_database limit 1) touched
