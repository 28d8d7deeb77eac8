-- Sessions and workers of Shared Server now, waits and transactions since the start (ms, ms since the epoch), of all dispatchers, with
-- what bounds them. A row also where there is no dispatcher. Native sessions, which each dispatcher counts for the whole server, are
-- counted without this one and the agent's sampler.
  with dispatchers as materialized (
       select * from polar_stat_dispatcher)
select current_setting('ssl')::bool
         and coalesce(current_setting('polar_ss_share_tls', true), 'off') <> 'on' as tls,
       current_setting('max_connections')::int as max_connections,
       current_setting('polar_ss_backend_max_count')::int as backend_max_count,
       current_setting('polar_ss_max_sessions')::int as sessions_max,
       (select setting::float8 * 1024 from pg_settings where name = 'polar_ss_shared_memory_size') as memory_max_bytes,
       d.*,
       greatest(d.n_native - agents.sessions, 0)::int as native,
       waits.p50 as wait_p50,
       waits.p99 as wait_p99
  from (select count(*)::int as dispatchers,
               extract(epoch from min(start_time))::float8 * 1000 as since,
               sum(n_login + n_bound + n_parked + n_waiting - n_dedicated)::int as shared,
               sum(n_dedicated)::int as dedicated,
               max(n_native) as n_native,
               sum(n_login)::int as login,
               sum(n_bound)::int as bound,
               sum(n_parked)::int as parked,
               sum(n_waiting)::int as waiting,
               sum(n_backends)::int as workers,
               sum(n_idle_backends)::int as free_workers,
               sum(n_pools)::int as pools,
               sum(transactions)::float8 as transactions,
               sum(timeouts)::float8 as timeouts,
               sum(binds)::float8 as binds,
               sum(session_memory)::float8 as memory_bytes
          from dispatchers) d
 cross join (select min(most_ms) filter (where seen >= 0.5 * total) as p50,
                    min(most_ms) filter (where seen >= 0.99 * total) as p99
               from (select power(2, bucket)::float8 / 1000 as most_ms,
                            sum(sum(waited)) over (order by bucket) as seen,
                            sum(sum(waited)) over () as total
                       from dispatchers h
                      cross join unnest(h.wait_histogram) with ordinality as w (waited, bucket)
                      group by bucket) buckets
              where total > 0) waits
 cross join (select count(*)::int as sessions
               from pg_stat_activity
              where usename = current_user and backend_type = 'client backend') agents
