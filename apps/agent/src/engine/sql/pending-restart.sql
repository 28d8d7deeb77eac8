-- Settings whose new value waits for a restart.
select name, pg_stat_force_next_flush() is null as flushed
  from pg_settings
 where pending_restart
 order by name
