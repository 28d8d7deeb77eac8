-- Exchanges the rows of a result ($1) and a table ($2).
select rows_before as "rowsBefore", rows_now as "rowsNow"
  from polar_flashback_swap($1::oid::regclass, $2::oid::regclass)
