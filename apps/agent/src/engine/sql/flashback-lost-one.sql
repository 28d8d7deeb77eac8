-- What became of the table $1 at $2, and its names.
select d.schema_name as schema, d.relation_name as name, d.kind
  from polar_flashback_dropped() d
 where d.relation = $1::oid and d.lsn = $2::pg_lsn
 limit 1
