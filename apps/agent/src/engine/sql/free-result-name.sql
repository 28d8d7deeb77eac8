-- The first name for the result of a flashback of $1 that no relation of its schema has (of any, where it is not there).
select name
  from (select 'polar_flashback_' || $1::oid || case when n = 1 then '' else '_' || n end as name, n
          from generate_series(1, 1000) n) candidate
 where not exists (select from pg_class c
                    where c.relname = candidate.name
                      and c.relnamespace = coalesce((select t.relnamespace from pg_class t where t.oid = $1::oid), c.relnamespace))
 order by n
 limit 1
