-- Sessions of clients whose transaction lasts and that wait for something of the server, by what they wait for; and, where
-- some of them wait for a lock, what those wait for who hold it. ended_transactions grows when one that wrote has ended.
select pg_snapshot_xmax(pg_current_snapshot())::text::float8 as ended_transactions,
       (select pid from pg_stat_activity where backend_type = 'checkpointer') as checkpointer_pid,
       (with work as materialized (
             select pid, state, wait_event_type as type, wait_event as event,
                    (extract(epoch from clock_timestamp() - xact_start) * 1000)::float8 as age
               from pg_stat_activity
              where backend_type = 'client backend' and pid <> pg_backend_pid() and xact_start is not null),
             stuck as materialized (
             select * from work
              where state = 'active' and age >= 400
                and (type is null or type not in ('Client', 'Activity', 'Timeout', 'Extension'))),
             holders as (
             select distinct on (h.pid) h.type, h.event
               from (select pid from stuck where type = 'Lock' order by age desc limit 5) w,
                    unnest(pg_blocking_pids(w.pid)) b (pid)
               join work h on h.pid = b.pid
              where h.state = 'active' and h.type in ('IO', 'LWLock', 'IPC'))
        select json_build_object(
                 'waits', coalesce((select json_agg(json_build_object('type', type, 'event', event, 'count', n, 'ageMs', age))
                                      from (select type, event, count(*) as n, max(age) as age
                                              from stuck group by 1, 2) a), '[]'::json),
                 'holders', case when exists (select from stuck where type = 'Lock')
                                 then coalesce((select json_agg(json_build_object('type', type, 'event', event, 'count', n))
                                                  from (select type, event, count(*) as n from holders group by 1, 2) a),
                                               '[]'::json)
                                 else '[]'::json end)) as stuck
