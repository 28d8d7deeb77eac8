-- Whether sessions share backends, and which processes are the dispatchers. Extensions before version 1.1 know of one, and not when
-- it was last active; moments are told as texts, to be compared, and the server's own clock beside them in ms.
select (select jsonb_agg(jsonb_build_object(
                 'number', seen.said -> 'dispatcher',
                 'pid', seen.said -> 'pid',
                 'last_active', seen.said ->> 'last_active',
                 'relay_last_active', seen.said ->> 'relay_last_active'))
          from (select to_jsonb(d) as said
                  from polar_stat_dispatcher d) seen) as dispatchers,
       extract(epoch from clock_timestamp())::float8 * 1000 as now,
       current_setting('polar_ss_dispatcher_count')::int as dispatcher_count,
       current_setting('polar_ss_port')::int as port,
       current_setting('polar_enable_shared_server')::bool as enabled,
       coalesce(current_setting('polar_ss_share_tls', true), 'off') = 'on' as shares_tls
