-- Whose the setting is, and that synchronous_commit stays what its owner set. There are no standbys here.
SHOW polar_commit_floor;
SELECT name, setting, context, vartype, enumvals, boot_val FROM pg_settings WHERE name LIKE 'polar\_commit%';

-- It is the server's: no session, role, database or function can set it.
CREATE ROLE regress_commit_floor;
SET polar_commit_floor = 'off';
SET LOCAL polar_commit_floor = 'off';
SELECT set_config('polar_commit_floor', 'off', false);
ALTER ROLE regress_commit_floor SET polar_commit_floor = 'off';
ALTER ROLE ALL SET polar_commit_floor = 'off';
ALTER DATABASE regression SET polar_commit_floor = 'off';
ALTER ROLE regress_commit_floor IN DATABASE regression SET polar_commit_floor = 'off';
CREATE FUNCTION commit_floor_f() RETURNS int LANGUAGE sql SET polar_commit_floor = 'off' AS 'SELECT 1';
SET ROLE regress_commit_floor;
ALTER SYSTEM SET polar_commit_floor = 'off';
RESET ROLE;
GRANT SET ON PARAMETER polar_commit_floor TO regress_commit_floor;
SET ROLE regress_commit_floor;
SET polar_commit_floor = 'off';
RESET ROLE;
REVOKE SET ON PARAMETER polar_commit_floor FROM regress_commit_floor;
DROP ROLE regress_commit_floor;

-- What is no level of a standby is no floor.
ALTER SYSTEM SET polar_commit_floor = 'local';
ALTER SYSTEM SET polar_commit_floor = 'nonsense';

-- Each of the others is.
CREATE FUNCTION commit_floor_becomes(wanted text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_reload_conf();
	FOR i IN 1 .. 1000 LOOP
		EXIT WHEN current_setting('polar_commit_floor') = wanted;
		PERFORM pg_sleep(0.02);
	END LOOP;
	RETURN current_setting('polar_commit_floor', true);
END $$;
ALTER SYSTEM SET polar_commit_floor = 'remote_write';
SELECT commit_floor_becomes('remote_write');
ALTER SYSTEM SET polar_commit_floor = 'remote_apply';
SELECT commit_floor_becomes('remote_apply');
ALTER SYSTEM SET polar_commit_floor = 'on';
SELECT commit_floor_becomes('on');

-- A commit puts back what it has raised, however synchronous_commit was set and whatever ends the transaction.
CREATE TABLE commit_floor_t (a int PRIMARY KEY);
SET synchronous_commit = off;
INSERT INTO commit_floor_t VALUES (1);
SHOW synchronous_commit;
BEGIN;
SET LOCAL synchronous_commit = local;
INSERT INTO commit_floor_t VALUES (2);
SHOW synchronous_commit;
COMMIT AND CHAIN;
SHOW synchronous_commit;
INSERT INTO commit_floor_t VALUES (3);
SET synchronous_commit = local;
COMMIT;
SHOW synchronous_commit;
BEGIN;
SET synchronous_commit = off;
ROLLBACK;
SHOW synchronous_commit;
SET synchronous_commit = off;
BEGIN;
SAVEPOINT s;
SET synchronous_commit = local;
INSERT INTO commit_floor_t VALUES (4);
ROLLBACK TO s;
INSERT INTO commit_floor_t VALUES (4);
COMMIT;
SHOW synchronous_commit;
DO $$
BEGIN
	INSERT INTO commit_floor_t VALUES (5);
	COMMIT;
	RAISE NOTICE 'after a commit: %', current_setting('synchronous_commit');
	SET LOCAL synchronous_commit = local;
	INSERT INTO commit_floor_t VALUES (6);
	BEGIN
		INSERT INTO commit_floor_t VALUES (6);
	EXCEPTION WHEN unique_violation THEN
		RAISE NOTICE 'in an exception: %', current_setting('synchronous_commit');
	END;
	COMMIT;
	RAISE NOTICE 'after a commit: %', current_setting('synchronous_commit');
END $$;
SHOW synchronous_commit;

-- An error after it was raised: a temporary object keeps a transaction from being prepared.
BEGIN;
CREATE TEMP TABLE commit_floor_temp (a int);
PREPARE TRANSACTION 'commit_floor';
SHOW synchronous_commit;
-- and there is nothing of that name to commit
COMMIT PREPARED 'commit_floor';
SHOW synchronous_commit;
ROLLBACK PREPARED 'commit_floor';
SHOW synchronous_commit;

-- A level above the floor stays.
SET synchronous_commit = remote_apply;
INSERT INTO commit_floor_t VALUES (7);
SHOW synchronous_commit;

ALTER SYSTEM RESET polar_commit_floor;
SELECT commit_floor_becomes('off');
SELECT count(*) FROM commit_floor_t;
DROP TABLE commit_floor_t;
DROP FUNCTION commit_floor_becomes(text);
