-- What checkpoints have cost.
select num_timed::float8 as checkpoints_timed,
       num_requested::float8 as checkpoints_requested,
       write_time::float8 as checkpoint_write_time,
       sync_time::float8 as checkpoint_sync_time,
       buffers_written::float8 as checkpoint_buffers,
       extract(epoch from stats_reset)::float8 as checkpointer_reset
  from pg_stat_checkpointer
