-- What this instance knows of replication, as one document (ReplicationObserved in packages/domain). Positions are of
-- WAL that is on its disk.
select jsonb_build_object(
         'endLsn', case when pg_is_in_recovery() then greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())
                        else pg_current_wal_flush_lsn() end,
         'replayedLsn', case when pg_is_in_recovery() then pg_last_wal_replay_lsn() end,
         'timeline', case when pg_is_in_recovery()
                          then coalesce((select received_tli from pg_stat_wal_receiver),
                                        (select timeline_id from pg_control_checkpoint()))
                          else ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int end,
         'replayPaused', case when pg_is_in_recovery() then pg_is_wal_replay_paused() else false end,
         'standbys', coalesce((select jsonb_agg(jsonb_build_object(
                                        'applicationName', application_name, 'pid', pid,
                                        'clientAddress', host(client_addr), 'state', state,
                                        'sentLsn', sent_lsn, 'writtenLsn', write_lsn,
                                        'flushedLsn', flush_lsn, 'replayedLsn', replay_lsn,
                                        'writeLagMs', (extract(epoch from write_lag) * 1000)::float8,
                                        'flushLagMs', (extract(epoch from flush_lag) * 1000)::float8,
                                        'replayLagMs', (extract(epoch from replay_lag) * 1000)::float8,
                                        'syncState', sync_state) order by application_name, pid)
                                 from pg_stat_replication), '[]'),
         'slots', coalesce((select jsonb_agg(jsonb_build_object(
                                     'name', slot_name, 'active', active, 'restartLsn', restart_lsn,
                                     'walStatus', wal_status,
                                     'retainedBytes', pg_wal_lsn_diff(case when pg_is_in_recovery() then pg_last_wal_replay_lsn()
                                                                           else pg_current_wal_lsn() end, restart_lsn)::float8)
                                     order by slot_name)
                              from pg_replication_slots
                             where slot_type = 'physical' and not temporary), '[]'),
         'receiver', (select jsonb_build_object(
                               'status', status, 'senderHost', sender_host, 'senderPort', sender_port,
                               'slotName', slot_name, 'receivedTimeline', received_tli,
                               'silentMs', (extract(epoch from clock_timestamp() - last_msg_receipt_time) * 1000)::float8)
                        from pg_stat_wal_receiver),
         'synchronousStandbyNames', current_setting('synchronous_standby_names'),
         'synchronousCommit', current_setting('synchronous_commit'),
         'fullPageWrites', current_setting('full_page_writes') = 'on',
         'waitingCommits', (select count(*) from pg_stat_activity where wait_event = 'SyncRep')) as replication_state
