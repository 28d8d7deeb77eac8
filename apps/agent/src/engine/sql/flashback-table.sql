-- Makes a table named $3, beside the table $1, with the rows that it had at the moment $2.
select result::oid, rows
  from polar_flashback_table($1::oid::regclass, $2::timestamptz, $3::name, null::name, false::bool, null::text)
