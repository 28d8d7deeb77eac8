-- Client connections by what they do, without this one. pg_locks is only opened when somebody waits.
select count(*) filter (where client)::float8 as connections_total,
       count(*) filter (where client and state = 'active')::float8 as connections_active,
       count(*) filter (where client and state = 'idle')::float8 as connections_idle,
       count(*) filter (where client and state like 'idle in transaction%')::float8 as connections_idle_in_transaction,
       count(*) filter (where client and waits)::float8 as connections_waiting,
       case when bool_or(waits) then (select count(*) from pg_locks where not granted) else 0 end::float8 as locks_waiting,
       coalesce(extract(epoch from clock_timestamp() - min(xact_start)), 0)::float8 as oldest_transaction
  from (select backend_type = 'client backend' as client,
               state,
               coalesce(wait_event_type = 'Lock', false) as waits,
               xact_start
          from pg_stat_activity
         where pid <> pg_backend_pid() and backend_type <> 'walsender') a
