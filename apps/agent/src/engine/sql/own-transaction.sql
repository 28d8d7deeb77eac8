-- The number of this transaction, with its WAL so far flushed: from then on no crash gives it to another one.
select pg_current_xact_id()::text as xid,
       left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) as timeline,
       pg_logical_emit_message(false, 'floe', '', true)::text as flushed
