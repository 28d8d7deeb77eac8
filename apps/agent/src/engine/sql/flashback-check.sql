-- Whether a table can be read as it was at a moment, and the nearest one that works.
select possible, reason, hint, to_char(nearest_time, 'YYYY-MM-DD"T"HH24:MI:SS.USOF') as nearest
  from polar_flashback_check($1::oid::regclass, $2::timestamptz)
