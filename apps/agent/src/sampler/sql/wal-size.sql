-- Size of the WAL directory in bytes. The join only touches a relation: without one the flush would have nothing to do
-- and this transaction would be counted a tick late.
select sum(size)::float8 as wal_size, pg_stat_force_next_flush() is null as flushed from pg_ls_waldir() cross join (select from pg_database limit 1) touched
