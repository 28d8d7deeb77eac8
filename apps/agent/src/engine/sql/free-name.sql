-- Whether there is a schema $1, and the first name that no relation of it has: $2, else that of a result of the table $3.
select exists (select from pg_namespace n where n.nspname = $1) as schema_exists,
       (select candidate.name
          from (select $2::text as name, 0 as n
                 union all
                select 'polar_flashback_' || $3::oid || case when n = 1 then '' else '_' || n end, n
                  from generate_series(1, 1000) n) candidate
         where not exists (select from pg_class c
                             join pg_namespace s on s.oid = c.relnamespace
                            where s.nspname = $1 and c.relname = candidate.name)
         order by candidate.n
         limit 1) as name
