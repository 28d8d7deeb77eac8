-- What tells this session from any other, whatever becomes of its number.
select backend_start::text from pg_stat_activity where pid = pg_backend_pid()
