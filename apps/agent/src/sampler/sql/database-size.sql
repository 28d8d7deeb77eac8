-- Size of all databases in bytes.
select sum(pg_database_size(oid))::float8 as database_size, pg_stat_force_next_flush() is null as flushed
  from pg_database
