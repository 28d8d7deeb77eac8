-- Which table each partition of this database is part of, partitioned ones among them.
select i.inhrelid as child, i.inhparent as parent
  from pg_inherits i
  join pg_class c on c.oid = i.inhparent
 where c.relkind = 'p'
 limit 100000
