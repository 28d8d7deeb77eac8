-- Sessions and workers of Shared Server. A view without a dispatcher has no row: then nothing of it is known, and the tick has its
-- row all the same. The agent's own session is one of the native ones. Waits are counted since the start.
select max(n_login + n_bound + n_parked + n_waiting - n_dedicated)::float8 as sessions_shared,
       max(n_dedicated)::float8 as sessions_dedicated,
       max(greatest(n_native - 1, 0))::float8 as sessions_native,
       max(n_parked)::float8 as sessions_parked,
       max(n_waiting)::float8 as sessions_waiting,
       max(n_backends)::float8 as workers,
       max(n_idle_backends)::float8 as workers_free,
       max(transactions)::float8 as shared_transactions,
       max(timeouts)::float8 as session_wait_timeouts,
       extract(epoch from max(start_time))::float8 as dispatcher_reset,
       max(wait_histogram::float8[]) as session_waits
  from polar_stat_dispatcher
