-- On a standby: age of the last replayed transaction; 0 when everything received is replayed. Null on a primary. After a
-- pause of its primary it is the length of that pause: replay-delay.ts bounds it.
select case when not pg_is_in_recovery() then null
            when pg_last_wal_receive_lsn() <= pg_last_wal_replay_lsn() then 0
            else extract(epoch from clock_timestamp() - pg_last_xact_replay_timestamp())
       end::float8 as replay_delay
