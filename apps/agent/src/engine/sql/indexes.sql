-- The indexes that users made in this database, or of one table: how large each is, why it cannot be rebuilt beside writers,
-- and how far the one is that is being built, by which process.
select c.oid, n.nspname as schema, c.relname as name, i.indrelid as "table",
       coalesce(pg_relation_size(c.oid), 0) as bytes,
       not i.indisvalid and c.relname ~ '_cc(new|old)[0-9]*$' as transient,
       case when i.indisexclusion then 'it belongs to an exclusion constraint'
            when not i.indisvalid and c.relname ~ '_cc(new|old)[0-9]*$'
            then 'a rebuild left it unfinished; drop it by DROP INDEX CONCURRENTLY' end as "whyNot",
       p.pid, p.phase,
       case when p.phase in ('initializing', 'waiting for writers before build') then 0
            when p.phase like 'building index%' then 0.8 * coalesce(
              greatest(p.blocks_done::float8 / nullif(p.blocks_total, 0), p.tuples_done::float8 / nullif(p.tuples_total, 0)), 0)
            when p.phase is not null then 0.9 end as fraction
  from pg_index i
  join pg_class c on c.oid = i.indexrelid
  join pg_namespace n on n.oid = c.relnamespace
  left join pg_stat_progress_create_index p on p.index_relid = c.oid and p.datname = current_database()
 where c.relkind = 'i' and c.relpersistence <> 't' and c.oid >= 16384 and ($1::oid is null or i.indrelid = $1)
 order by n.nspname, c.relname
