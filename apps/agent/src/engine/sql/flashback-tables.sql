-- Tables that somebody may want back, of those whose name has $1 in it: $2 of them, those of that very name first, then those
-- whose name begins so, then the largest. Takes no lock on any: sizes are those that VACUUM and ANALYZE have left, or that of the first file.
with found as (
  select c.oid, n.nspname, c.relname, c.relowner, c.relkind, c.relpersistence, c.reltuples, c.reltoastrelid, c.relam,
         count(*) over () as total,
         (select coalesce(sum(p.relpages::int8), 0)
            from pg_class p
           where p.oid in (c.oid, c.reltoastrelid)) as pages
    from pg_class c
    join pg_namespace n on n.oid = c.relnamespace
   where c.relkind in ('r', 'p', 'm')
     and c.relpersistence <> 't'
     and n.nspname <> 'information_schema'
     and n.nspname not like 'pg\_%'
     and ($1 = '' or strpos(lower(n.nspname || '.' || c.relname), lower($1)) > 0)
   order by $1 in (c.relname::text, n.nspname || '.' || c.relname) desc, starts_with(lower(c.relname), lower($1)) desc, pages desc,
            n.nspname, c.relname
   limit $2
), leaves as (
  with recursive tree as (
    select f.oid as root, f.oid from found f where f.relkind = 'p'
    union all
    select t.root, i.inhrelid from tree t join pg_inherits i on i.inhparent = t.oid
  )
  select t.root, c.oid, c.reltoastrelid, c.reltuples from tree t join pg_class c on c.oid = t.oid where c.relkind = 'r'
  union all
  select f.oid, f.oid, f.reltoastrelid, f.reltuples from found f where f.relkind <> 'p'
), sizes as (
  select l.root,
         sum(greatest(c.relpages::int8 * current_setting('block_size')::int8,
                      coalesce((pg_stat_file(pg_relation_filepath(c.oid), true)).size, 0))) as bytes
    from leaves l join pg_class c on c.oid in (l.oid, l.reltoastrelid)
   group by l.root
)
select f.oid, f.nspname as schema, f.relname as name, pg_get_userbyid(f.relowner) as owner, f.total,
       case f.relkind when 'r' then 'table' when 'p' then 'partitioned' else 'materialized' end as kind,
       coalesce(s.bytes, 0)::float8 as size_bytes,
       (select case when bool_or(l.reltuples < 0) then null else sum(l.reltuples::float8) end
          from leaves l where l.root = f.oid) as rows_estimate,
       case when f.relpersistence = 'u' then 'It is unlogged: no WAL has its changes.'
            when f.relkind <> 'p' and f.relam <> 2 then 'Its table access method is not heap.' end as why_not
  from found f left join sizes s on s.root = f.oid
 order by $1 in (f.relname::text, f.nspname || '.' || f.relname) desc, starts_with(lower(f.relname), lower($1)) desc, f.pages desc,
          f.nspname, f.relname
