-- What a piece of WAL says of the tables of this database: from $1 on (null: from the oldest that is kept), $2 bytes at most;
-- changes of at least $3 rows (ms since the epoch, to the microsecond).
select kind, (extract(epoch from at) * 1000)::float8 as at, lsn::text, relation::oid, inserted, updated, deleted
  from polar_flashback_activity($1::pg_lsn, $2::int8, $3::int8)
