-- What became of a transaction: committed, aborted, in progress, or null where that is too long ago. On a standby, and on
-- another timeline, its number may be another's.
select pg_is_in_recovery() as standby,
       case when not pg_is_in_recovery() then left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) end as timeline,
       case when not pg_is_in_recovery() then pg_xact_status($1::xid8) end as status
