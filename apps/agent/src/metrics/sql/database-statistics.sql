-- Counters of each database, under postgres_exporter's names.
select datname, datid::text as datid, numbackends::float8 as numbackends, xact_commit::float8 as xact_commit,
       xact_rollback::float8 as xact_rollback, blks_read::float8 as blks_read, blks_hit::float8 as blks_hit,
       tup_returned::float8 as tup_returned, tup_fetched::float8 as tup_fetched, tup_inserted::float8 as tup_inserted,
       tup_updated::float8 as tup_updated, tup_deleted::float8 as tup_deleted, conflicts::float8 as conflicts,
       temp_files::float8 as temp_files, temp_bytes::float8 as temp_bytes, deadlocks::float8 as deadlocks,
       blk_read_time::float8 as blk_read_time, blk_write_time::float8 as blk_write_time,
       active_time::float8 / 1000 as active_time_seconds, pg_stat_force_next_flush() is null as flushed
  from pg_stat_database
 where datname is not null
 order by datname
