-- Sessions and workers of Shared Server now, waits and transactions since the start (ms, ms since the epoch), with what bounds them.
-- A row also where there is no dispatcher. Native sessions are counted without this one and the agent's sampler.
select current_setting('ssl')::bool
         and coalesce(current_setting('polar_ss_share_tls', true), 'off') <> 'on' as tls,
       current_setting('max_connections')::int as max_connections,
       current_setting('polar_ss_backend_max_count')::int as backend_max_count,
       current_setting('polar_ss_max_sessions')::int as sessions_max,
       (select setting::float8 * 1024 from pg_settings where name = 'polar_ss_shared_memory_size') as memory_max_bytes,
       d.pid as dispatcher_pid,
       extract(epoch from d.start_time)::float8 * 1000 as since,
       d.n_login + d.n_bound + d.n_parked + d.n_waiting - d.n_dedicated as shared,
       d.n_dedicated as dedicated,
       greatest(d.n_native - agents.sessions, 0)::int as native,
       d.n_login as login,
       d.n_bound as bound,
       d.n_parked as parked,
       d.n_waiting as waiting,
       d.n_backends as workers,
       d.n_idle_backends as free_workers,
       d.n_pools as pools,
       d.transactions,
       d.timeouts,
       d.binds,
       d.wait_p50,
       d.wait_p99,
       d.session_memory as memory_bytes
  from polar_stat_dispatcher d
 right join (select count(*)::int as sessions
               from pg_stat_activity
              where usename = current_user and backend_type = 'client backend') agents on true
