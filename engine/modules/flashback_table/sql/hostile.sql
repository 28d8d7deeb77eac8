-- what an owner wrote never runs with the rights of whoever compares, merges, swaps and exports
SET client_min_messages = warning;
CREATE ROLE regress_hostile_owner;
CREATE ROLE regress_hostile_super SUPERUSER;
CREATE SCHEMA hostile AUTHORIZATION regress_hostile_owner;
SET ROLE regress_hostile_owner;
SET search_path = hostile;
CREATE TABLE log (what text, who name, path text);
-- notes who runs it, and tries to become somebody else, and to leave something behind
CREATE FUNCTION attack(what text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
  sql text;
BEGIN
  IF current_setting('hostile.armed', true) IS DISTINCT FROM 'on' THEN
    RETURN true;
  END IF;
  INSERT INTO hostile.log VALUES (what, current_user, current_setting('search_path'));
  FOREACH sql IN ARRAY ARRAY['RESET ROLE', 'SET ROLE regress_hostile_super', 'SET SESSION AUTHORIZATION DEFAULT',
    'SET LOCAL ROLE NONE', 'RESET SESSION AUTHORIZATION', 'CREATE TEMP TABLE left_behind (i int)', 'PREPARE p AS SELECT 1',
    'DECLARE c CURSOR WITH HOLD FOR SELECT 1', 'LISTEN x', 'DISCARD ALL', 'ALTER ROLE regress_hostile_owner SUPERUSER', 'COPY hostile.log TO PROGRAM ''true''']
  LOOP
    BEGIN
      EXECUTE sql;
      INSERT INTO hostile.log VALUES (what || ' could ' || sql, current_user);
    EXCEPTION WHEN OTHERS THEN NULL;
    END;
  END LOOP;
  -- it must be undone
  PERFORM set_config('work_mem', '77MB', false), set_config('search_path', 'hostile', false), set_config('hostile.mark', 'left', false);
  PERFORM set_config('search_path', 'pg_catalog, pg_temp', false);
  RETURN true;
END$$;
CREATE FUNCTION fire() RETURNS trigger LANGUAGE plpgsql AS
$$BEGIN PERFORM hostile.attack(tg_name); RETURN coalesce(NEW, OLD); END$$;
CREATE FUNCTION value(what text) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
$$BEGIN PERFORM hostile.attack(what); RETURN 1; END$$;
CREATE FUNCTION value(text, text) RETURNS bool IMMUTABLE LANGUAGE plpgsql AS
$$BEGIN PERFORM hostile.attack('operator'); RETURN true; END$$;
CREATE FUNCTION value(text, int) RETURNS bool IMMUTABLE LANGUAGE plpgsql AS
$$BEGIN PERFORM hostile.attack('better operator'); RETURN true; END$$;
CREATE DOMAIN trapped AS text CHECK (hostile.attack('domain'));
CREATE TYPE pair AS (x int);
CREATE FUNCTION to_int(pair) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
$$BEGIN PERFORM hostile.attack('cast'); RETURN 1; END$$;
CREATE CAST (pair AS int) WITH FUNCTION to_int AS IMPLICIT;
CREATE OPERATOR hostile.= (FUNCTION = value, LEFTARG = text, RIGHTARG = text);
CREATE OPERATOR hostile.= (FUNCTION = value, LEFTARG = text, RIGHTARG = int);
CREATE TABLE trap (id int, "k "";" trapped, v text CHECK (hostile.attack('check')), p pair,
  s int GENERATED ALWAYS AS (hostile.value('generated')) STORED, PRIMARY KEY (id, "k "";"));
CREATE UNIQUE INDEX ON trap ((hostile.value('index expression' || left(v, 0)) + id));
CREATE INDEX ON trap (id) WHERE hostile.value('index predicate') = 1;
CREATE TRIGGER before_row BEFORE INSERT OR UPDATE OR DELETE ON trap FOR EACH ROW EXECUTE FUNCTION fire();
CREATE TRIGGER before_statement BEFORE INSERT OR UPDATE OR DELETE ON trap EXECUTE FUNCTION fire();
CREATE TRIGGER condition_of_trigger AFTER INSERT ON trap FOR EACH ROW WHEN (hostile.attack('condition of a trigger')) EXECUTE FUNCTION fire();
CREATE CONSTRAINT TRIGGER deferred AFTER INSERT OR UPDATE OR DELETE ON trap DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fire();
CREATE TABLE child (id int, k trapped, FOREIGN KEY (id, k) REFERENCES trap ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED);
CREATE TRIGGER of_cascade AFTER DELETE ON child FOR EACH ROW EXECUTE FUNCTION fire();
ALTER TABLE trap ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON trap USING (hostile.attack('policy'));
INSERT INTO trap VALUES (1, 'a"', 'x', '(1)'), (2, 'b', 'y', '(2)'), (3, 'c', 'z', '(3)');
SET ROLE regress_hostile_super;
SELECT clock_timestamp() AS t \gset
DELETE FROM trap WHERE id = 1;
UPDATE trap SET v = 'changed' WHERE id = 2;
INSERT INTO trap VALUES (4, 'd', 'new', '(4)');
INSERT INTO child VALUES (4, 'd');
SET ROLE regress_hostile_owner;
ALTER TABLE trap ADD COLUMN later int;
ALTER TABLE trap ALTER COLUMN later SET DEFAULT hostile.value('default');
SET ROLE regress_hostile_super;
-- the superuser's path has the owner's operators first
SET search_path = hostile, public;
SELECT result FROM polar_flashback_table('trap', :'t', 'trapped_rows') \gset

SET hostile.armed = on;
SELECT kind, rows FROM polar_flashback_compare('trap', :'t') WHERE rows IS NOT NULL;
SELECT kind, rows FROM polar_flashback_compare('trap', result => :'result') WHERE rows IS NOT NULL;
SELECT count(*) FROM log;
BEGIN;
SELECT * FROM polar_flashback_merge(:'result', 'trap', true, true, true, dry_run => true);
SELECT count(*) FROM log;
SELECT * FROM polar_flashback_merge(:'result', 'trap', true, true, true, keys => '{{1,"a\""},{2,b},{4,d}}',
  condition => 'v = v AND hostile.attack(''condition'') AND p + 1 > 0');
SELECT count(*) AS noted FROM log \gset
COMMIT;
SET hostile.armed = off;
-- all of it was run then, as the owner, restricted, and nothing at the end of the transaction
SELECT count(*) = :noted AS nothing_later FROM log;
SELECT what, who, path, count(*) > 0 AS run FROM log GROUP BY what, who, path ORDER BY what, who, path;
-- and nothing is left
SELECT session_user = current_setting('session_authorization') AS session, current_user, current_setting('role') AS role,
  current_setting('work_mem') AS work_mem, current_setting('search_path') AS search_path, current_setting('hostile.mark', true) AS mark;
SELECT count(*) FROM pg_prepared_statements WHERE name = 'p';
SELECT count(*) FROM pg_cursors WHERE name = 'c';
SELECT count(*) FROM pg_listening_channels();
SELECT count(*) FROM pg_class WHERE relname = 'left_behind';
SELECT id, "k "";", v, later FROM trap ORDER BY id;

-- the same after an error
DELETE FROM trap WHERE id = 1;
SET hostile.armed = on;
SELECT * FROM polar_flashback_merge(:'result', 'trap', true, false, true, expected_deleted => 5);
BEGIN;
SAVEPOINT s;
SELECT * FROM polar_flashback_merge(:'result', 'trap', true, true, true, condition => 'length(v) / 0 > 1');
ROLLBACK TO s;
SELECT current_user, current_setting('work_mem') AS work_mem, current_setting('search_path') AS search_path;
COMMIT;
SELECT current_user, current_setting('work_mem') AS work_mem, current_setting('search_path') AS search_path;

-- exporting and swapping
SET hostile.armed = off;
DELETE FROM log;
SET hostile.armed = on;
SELECT polar_flashback_csv('trap', 'hostile.attack(''condition of an export'') AND v = v');
SELECT length(polar_flashback_csv('trap', 'hostile.attack(''condition of an export'') AND v = v')) > 0 AS exported LIMIT 1;
SELECT current_user, current_setting('search_path') AS search_path;
SELECT * FROM polar_flashback_swap(:'result', 'trap');
SET hostile.armed = off;
SELECT what, who, path, count(*) > 0 AS run FROM log GROUP BY what, who, path ORDER BY what, who, path;
SELECT current_user, current_setting('role') AS role, current_setting('work_mem') AS work_mem,
  current_setting('search_path') AS search_path, current_setting('hostile.mark', true) AS mark;
SELECT id, "k "";", v, later FROM trap ORDER BY id;
SELECT count(*) FROM pg_class WHERE relname = 'left_behind';
SELECT * FROM polar_flashback_swap(:'result', 'trap');

-- an owner cannot put off what was made immediate
SET ROLE regress_hostile_owner;
CREATE FUNCTION put_off() RETURNS trigger LANGUAGE plpgsql AS
$$BEGIN SET CONSTRAINTS ALL DEFERRED; RETURN NULL; END$$;
CREATE TRIGGER a_put_off BEFORE INSERT ON trap EXECUTE FUNCTION put_off();
SET ROLE regress_hostile_super;
SELECT * FROM polar_flashback_merge(:'result', 'trap', true, true, true);
SELECT * FROM polar_flashback_merge(:'result', 'trap', true, true, true, dry_run => true);
SET ROLE regress_hostile_owner;
DROP TRIGGER a_put_off ON trap;
-- what the caller has put off before runs as the caller
CREATE FUNCTION note_who() RETURNS trigger LANGUAGE plpgsql AS
$$BEGIN RAISE WARNING 'as %', current_user; RETURN NULL; END$$;
SET ROLE regress_hostile_super;
CREATE TABLE public.of_super (id int);
CREATE CONSTRAINT TRIGGER t AFTER INSERT ON public.of_super DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note_who();
BEGIN;
INSERT INTO public.of_super VALUES (1);
SELECT * FROM polar_flashback_merge(:'result', 'trap', true, true, true);
COMMIT;
DROP TABLE public.of_super;

-- policies that are forced on the owner
SET ROLE regress_hostile_owner;
ALTER TABLE trap FORCE ROW LEVEL SECURITY;
DELETE FROM trap WHERE id = 2;
SET ROLE regress_hostile_super;
SELECT kind, rows FROM polar_flashback_compare('trap', result => :'result') WHERE rows IS NOT NULL AND kind IN ('then', 'now');
SELECT * FROM polar_flashback_merge(:'result', 'trap', true, true, true);
SET ROLE regress_hostile_owner;
ALTER TABLE trap NO FORCE ROW LEVEL SECURITY;

-- an owner without the rights that a merge needs
REVOKE INSERT ON trap FROM regress_hostile_owner;
SET ROLE regress_hostile_super;
SELECT * FROM polar_flashback_merge(:'result', 'trap', true, true, true);
RESET ROLE;
SET search_path = public;
DROP OWNED BY regress_hostile_owner CASCADE;
DROP ROLE regress_hostile_owner, regress_hostile_super;
