-- polar_bulk_read_size and io_combine_limit are one variable with two names.
SELECT name, setting, unit, context, vartype, source, min_val, max_val, boot_val, reset_val
  FROM pg_settings WHERE name IN ('io_combine_limit', 'polar_bulk_read_size') ORDER BY name;
SHOW polar_bulk_read_size;

-- Each name shows what the other one set.
SET polar_bulk_read_size = '1MB';
SHOW io_combine_limit;
SET io_combine_limit = 8;
SHOW polar_bulk_read_size;
SELECT name, setting, source, reset_val FROM pg_settings
  WHERE name IN ('io_combine_limit', 'polar_bulk_read_size') ORDER BY name;
SELECT set_config('polar_bulk_read_size', '256kB', false), current_setting('io_combine_limit');
SET POLAR_Bulk_Read_Size TO 4;
SHOW Polar_BULK_read_size;
RESET io_combine_limit;
SHOW polar_bulk_read_size;

-- 0 reads single blocks, and a read still works.
SET polar_bulk_read_size = 0;
SHOW io_combine_limit;
CREATE TABLE read_size_t AS SELECT g AS a, repeat('x', 500) AS b FROM generate_series(1, 2000) g;
SELECT count(*) FROM read_size_t;
ANALYZE read_size_t;
VACUUM read_size_t;
SET polar_bulk_read_size = '1MB';
SELECT count(*) FROM read_size_t;
RESET polar_bulk_read_size;

-- Values outside the range are refused and change nothing.
SET polar_bulk_read_size = '2MB';
SET polar_bulk_read_size = -1;
SET polar_bulk_read_size = 'much';
SHOW polar_bulk_read_size;

-- A rollback restores the value, whichever name set it and in whichever order.
BEGIN;
SET polar_bulk_read_size = '1MB';
SAVEPOINT s;
SET io_combine_limit = '64kB';
SET polar_bulk_read_size = '32kB';
ROLLBACK TO s;
SHOW io_combine_limit;
ROLLBACK;
SHOW polar_bulk_read_size;
BEGIN;
SET LOCAL io_combine_limit = '64kB';
SET LOCAL polar_bulk_read_size = '32kB';
SHOW io_combine_limit;
COMMIT;
SHOW polar_bulk_read_size;
BEGIN;
SET polar_bulk_read_size = '512kB';
SET LOCAL io_combine_limit = '32kB';
COMMIT;
SHOW polar_bulk_read_size;
RESET ALL;
SHOW io_combine_limit;

-- A function's SET clause holds for the function.
CREATE FUNCTION read_size_in_function() RETURNS text LANGUAGE sql
  SET polar_bulk_read_size = '1MB' AS $$ SELECT current_setting('io_combine_limit') $$;
SELECT read_size_in_function(), current_setting('polar_bulk_read_size');
SELECT proconfig FROM pg_proc WHERE proname = 'read_size_in_function';
CREATE OR REPLACE FUNCTION read_size_in_function() RETURNS text LANGUAGE sql
  SET io_combine_limit = '512kB' SET polar_bulk_read_size = '256kB'
  AS $$ SELECT current_setting('io_combine_limit') $$;
SELECT read_size_in_function();

-- Parallel workers have the leader's value.
CREATE FUNCTION read_size_in_worker() RETURNS text LANGUAGE sql PARALLEL SAFE
  AS $$ SELECT current_setting('polar_bulk_read_size') $$;
SET polar_bulk_read_size = '640kB';
SET debug_parallel_query = on;
SELECT read_size_in_worker();
EXPLAIN (COSTS OFF) SELECT read_size_in_worker();
RESET debug_parallel_query;
RESET polar_bulk_read_size;

-- Roles have one value, too, and a role may be granted the parameter by either name.
CREATE ROLE regress_read_size;
ALTER ROLE regress_read_size SET io_combine_limit = '64kB';
ALTER ROLE regress_read_size SET polar_bulk_read_size = '512kB';
SELECT setconfig FROM pg_db_role_setting s JOIN pg_roles r ON r.oid = s.setrole WHERE rolname = 'regress_read_size';
ALTER ROLE regress_read_size RESET polar_bulk_read_size;
SELECT count(*) FROM pg_db_role_setting s JOIN pg_roles r ON r.oid = s.setrole WHERE rolname = 'regress_read_size';
GRANT ALTER SYSTEM ON PARAMETER polar_bulk_read_size TO regress_read_size;
SELECT has_parameter_privilege('regress_read_size', 'io_combine_limit', 'ALTER SYSTEM');
REVOKE ALTER SYSTEM ON PARAMETER io_combine_limit FROM regress_read_size;
DROP ROLE regress_read_size;

-- The whole range is open without another setting, and SHOW ALL knows both names.
SELECT setting, boot_val, source FROM pg_settings WHERE name = 'io_max_combine_limit';
SELECT pg_settings_get_flags('polar_bulk_read_size') = pg_settings_get_flags('io_combine_limit') AS same_flags;

DROP TABLE read_size_t;
DROP FUNCTION read_size_in_function(), read_size_in_worker();
