-- Tables that flashbacks made in this database, the newest first (ms since the epoch).
select result::oid, schema_name, result_name, owner, relation::oid, relation_schema, relation_name,
       (extract(epoch from target_time) * 1000)::float8 as at, size_bytes
  from polar_flashback_results()
 order by result::oid desc
 limit 500
