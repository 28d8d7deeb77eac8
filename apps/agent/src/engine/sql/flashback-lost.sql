-- Tables that were dropped, truncated or rewritten and whose former file is kept, the newest first (ms since the epoch).
select relation::oid as "table", concat_ws('.', schema_name, relation_name) as name, kind,
       (extract(epoch from at) * 1000)::float8 as at, lsn::text, size_bytes,
       (extract(epoch from restorable_since) * 1000)::float8 as restorable_since, left(definition, 100000) as definition
  from polar_flashback_dropped() d
 order by d.at desc, d.lsn desc
 limit 500
