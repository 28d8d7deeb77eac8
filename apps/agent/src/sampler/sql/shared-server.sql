-- Sessions and workers of Shared Server, of all dispatchers together. A view without a dispatcher has no row: then nothing of it is
-- known, and the tick has its row all the same. Native sessions each of them counts for the whole server; the agent's own is one.
-- Waits are counted since the start. When one of several comes or goes the counts go on from others, as after a reset.
  with dispatchers as materialized (
       select * from polar_stat_dispatcher)
select sum(n_login + n_bound + n_parked + n_waiting - n_dedicated)::float8 as sessions_shared,
       sum(n_dedicated)::float8 as sessions_dedicated,
       max(greatest(n_native - 1, 0))::float8 as sessions_native,
       sum(n_parked)::float8 as sessions_parked,
       sum(n_waiting)::float8 as sessions_waiting,
       sum(n_backends)::float8 as workers,
       sum(n_idle_backends)::float8 as workers_free,
       sum(transactions)::float8 as shared_transactions,
       sum(timeouts)::float8 as session_wait_timeouts,
       sum(extract(epoch from start_time))::float8 as dispatcher_reset,
       (select array_agg(waited order by bucket)
          from (select bucket, sum(waited)::float8 as waited
                  from dispatchers h
                 cross join unnest(h.wait_histogram) with ordinality as w (waited, bucket)
                 group by bucket) buckets) as session_waits
  from dispatchers
