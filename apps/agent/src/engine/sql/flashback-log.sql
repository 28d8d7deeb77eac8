-- The flashback log and its window (ms since the epoch), with the settings that bound it. A standby knows moments up to just before
-- the last commit that it has replayed.
select state,
       mode,
       extract(epoch from oldest_time) * 1000 as oldest_at,
       (case when pg_is_in_recovery()
             then extract(epoch from greatest(oldest_time, pg_last_xact_replay_timestamp() - interval '1 microsecond')) * 1000
        end)::float8 as newest_at,
       extract(epoch from newest_point_time) * 1000 as newest_point_at,
       coalesce(points, 0) as points,
       extract(epoch from window_began) * 1000 as window_began_at,
       coalesce(windows_ended, 0) as windows_ended,
       extract(epoch from last_ended_at) * 1000 as last_ended_at,
       left(last_end_reason, 1000) as last_end_reason,
       -- columns that the module has since its version 1.2
       (to_jsonb(l)->>'shortened')::int8 as shortened,
       extract(epoch from (to_jsonb(l)->>'last_shortened_at')::timestamptz) * 1000 as last_shortened_at,
       left(to_jsonb(l)->>'last_shortened_reason', 1000) as last_shortened_reason,
       coalesce(size_bytes, 0) as size_bytes,
       bytes_per_second,
       coalesce(failures, 0) as failures,
       current_setting('polar_enable_fast_recovery_area')::bool as recovery_area,
       (select setting::float8 * 60000 from pg_settings where name = 'polar_fast_recovery_area_rotation') as rotation_ms,
       (select setting::float8 * 256 * 1048576 from pg_settings where name = 'polar_flashback_log_keep_segments') as keep_bytes,
       (select setting::float8 * 1048576 from pg_settings where name = 'polar_flashback_log_max_size') as max_bytes,
       (select setting::float8 * 1048576 from pg_settings where name = 'polar_flashback_recycle_max_size') as recycle_bytes
  from polar_stat_flashback_log l
