-- Whether sessions share backends, and which processes are the dispatchers. Extensions before version 1.1 know of one, and not when
-- it was last active; moments are told as texts, to be compared, and the server's own clock beside them in ms.
select (select jsonb_agg(jsonb_build_object(
                 'number', (seen.said ->> 'dispatcher')::int,
                 'pid', (seen.said ->> 'pid')::int,
                 'last_active', left(seen.said ->> 'last_active', 100),
                 'relay_last_active', left(seen.said ->> 'relay_last_active', 100)))
          from (select to_jsonb(d) as said
                  from polar_stat_dispatcher d
                 limit 17) seen) as dispatchers,
       extract(epoch from clock_timestamp())::float8 * 1000 as now,
       current_setting('polar_ss_dispatcher_count')::int as dispatcher_count,
       current_setting('polar_ss_port')::int as port,
       current_setting('polar_enable_shared_server')::bool as enabled,
       coalesce(current_setting('polar_ss_share_tls', true), 'off') = 'on' as shares_tls
