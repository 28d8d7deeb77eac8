-- Makes a table named $3, in the schema $4 (null: its own), with the rows that the table $1 had just before it was dropped,
-- truncated or rewritten at $2.
select result::oid, rows
  from polar_flashback_before_drop($1::oid, $2::pg_lsn, $3::name, $4::name, null::text)
