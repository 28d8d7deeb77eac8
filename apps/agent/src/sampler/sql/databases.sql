-- Transactions, rows and blocks of all databases together.
select sum(xact_commit)::float8 as xact_commit,
       sum(xact_rollback)::float8 as xact_rollback,
       sum(active_time)::float8 as active_time,
       sum(tup_returned)::float8 as tup_returned,
       sum(tup_fetched)::float8 as tup_fetched,
       sum(tup_inserted)::float8 as tup_inserted,
       sum(tup_updated)::float8 as tup_updated,
       sum(tup_deleted)::float8 as tup_deleted,
       sum(blks_hit)::float8 as blks_hit,
       sum(blks_read)::float8 as blks_read,
       sum(temp_bytes)::float8 as temp_bytes,
       sum(deadlocks)::float8 as deadlocks,
       extract(epoch from max(stats_reset))::float8 as databases_reset
  from pg_stat_database
