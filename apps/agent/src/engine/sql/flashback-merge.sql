-- Puts rows of a result ($1) back into a table ($2): inserts those missing ($3), restores the changed ($4), deletes the added
-- ($5); of these keys only ($6), and only if it comes to these counts ($7 to $9). $10: counts, and takes it back. $11: only rows
-- that match, which is evaluated as the owner of the table.
select inserted, restored, deleted, conflicts, conflict_example
  from polar_flashback_merge($1::oid::regclass, $2::oid::regclass, $3::bool, $4::bool, $5::bool, $6::text[], $11::text,
                             $7::int8, $8::int8, $9::int8, $10::bool)
