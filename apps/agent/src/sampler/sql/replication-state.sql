-- What this instance knows of replication, as one document (ReplicationObserved in packages/domain). Positions are of
-- WAL that is on its disk. A standby that has received nothing since its start may have more than it has replayed: that is
-- unknown here. $1: the timeline whose history the agent has read.
select jsonb_build_object(
         'endLsn', case when not pg_is_in_recovery() then pg_current_wal_flush_lsn()
                        when pg_last_wal_receive_lsn() is not null
                          then greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) end,
         'replayedLsn', case when pg_is_in_recovery() then pg_last_wal_replay_lsn() end,
         'timeline', t.timeline,
         'history', case when t.timeline > 1 and t.timeline is distinct from $1::int
                         then encode(pg_read_binary_file('pg_wal/' || lpad(upper(to_hex(t.timeline)), 8, '0') || '.history',
                                                         0, 65536, true), 'base64') end,
         -- most instances have none of any setting, and then the joins are not begun
         'commitModes', case when exists (select from pg_db_role_setting)
                             then (select coalesce(jsonb_agg(to_jsonb(m)), '[]') from (/* commit modes */) as m)
                             else '[]' end,
         'replayPaused', case when pg_is_in_recovery() then pg_is_wal_replay_paused() else false end,
         'standbys', coalesce((select jsonb_agg(jsonb_build_object(
                                        'applicationName', application_name, 'pid', pid,
                                        'clientAddress', host(client_addr), 'state', state,
                                        'sentLsn', sent_lsn, 'writtenLsn', write_lsn,
                                        'flushedLsn', flush_lsn, 'replayedLsn', replay_lsn,
                                        'writeLagMs', (extract(epoch from write_lag) * 1000)::float8,
                                        'flushLagMs', (extract(epoch from flush_lag) * 1000)::float8,
                                        'replayLagMs', (extract(epoch from replay_lag) * 1000)::float8,
                                        'replyAt', (extract(epoch from reply_time) * 1000)::float8,
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
         'commitFloor', current_setting('polar_commit_floor', true),
         'fullPageWrites', current_setting('full_page_writes') = 'on',
         'waitingCommits', (select count(*) from pg_stat_activity where wait_event = 'SyncRep')) as replication_state
  -- without a receiver the timeline is that of the segment it has come to: the newest that it has of it
  from (select case when not pg_is_in_recovery()
                      then ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int
                    else coalesce((select received_tli from pg_stat_wal_receiver),
                                  (select max(('x' || left(name, 8))::bit(32)::int)
                                     from pg_ls_waldir(),
                                          (select bytes_per_wal_segment::numeric as bytes from pg_control_init()) as s,
                                          (select pg_wal_lsn_diff(greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()), '0/0') - 1 as last) as e
                                    where name ~ '^[0-9A-F]{24}$'
                                      and right(name, 16) = upper(lpad(to_hex(div(last, 4294967296)::bigint), 8, '0')
                                                                  || lpad(to_hex(div(mod(last, 4294967296), bytes)::bigint), 8, '0'))))
               end as timeline) as t
