-- The rows of a table ($1) at a moment ($2), or those of a result ($3), compared with those of now: counts, then up to $4
-- samples of each kind.
select kind, rows, key, row_then, row_now
  from polar_flashback_compare($1::oid::regclass, $2::timestamptz, $3::oid::regclass, $4::int4)
