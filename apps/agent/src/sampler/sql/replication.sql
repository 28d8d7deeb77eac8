-- Standbys that stream from this instance, and how far the last of them is behind. Null without any.
select count(*)::float8 as replication_standbys,
       max(pg_wal_lsn_diff(case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end,
                           replay_lsn))::float8 as replication_lag_bytes,
       extract(epoch from max(replay_lag))::float8 as replication_lag
  from pg_stat_replication
 where state = 'streaming'
