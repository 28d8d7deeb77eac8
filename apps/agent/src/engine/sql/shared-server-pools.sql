-- Pools of workers, those with the most sessions first.
select datname as database,
       usename as "user",
       (to_jsonb(p) ->> 'dispatcher')::int as dispatcher,
       sessions,
       workers,
       free as free_workers,
       waiting,
       dedicated,
       transactions,
       binds,
       case when binds > 0 then wait_time / binds end as mean_wait
  from polar_stat_worker_pool p
 order by sessions desc, database, "user", to_jsonb(p) -> 'dispatcher'
 limit 128
