-- The moment of the tick and which life of the postmaster it belongs to, ms since the epoch. The flush makes the next
-- tick see exactly what this session itself has done, so that it can be taken off.
select extract(epoch from clock_timestamp())::float8 * 1000 as at,
       extract(epoch from pg_postmaster_start_time())::float8 * 1000 as postmaster_start,
       extract(epoch from pg_conf_load_time())::float8 * 1000 as configuration_loaded,
       pg_is_in_recovery() as in_recovery,
       current_setting('max_connections')::float8 as connections_max,
       extract(epoch from current_setting('checkpoint_timeout')::interval)::float8 as checkpoint_timeout,
       current_setting('checkpoint_completion_target')::float8 as checkpoint_completion_target,
       pg_stat_force_next_flush() is null as flushed
