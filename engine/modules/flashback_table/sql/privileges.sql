-- who may see rows as they were, and whose the result is
SET client_min_messages = warning;
CREATE ROLE regress_flashback_owner;
CREATE ROLE regress_flashback_reader;
CREATE ROLE regress_flashback_other;
CREATE ROLE regress_flashback_super SUPERUSER;
CREATE SCHEMA flashed AUTHORIZATION regress_flashback_owner;
GRANT USAGE ON SCHEMA flashed TO PUBLIC;

SET ROLE regress_flashback_owner;
SET search_path = flashed, public;
CREATE TABLE notes (id int, author text, secret text, gone int);
ALTER TABLE notes DROP COLUMN gone;
INSERT INTO notes VALUES (1, 'regress_flashback_reader', 'a'), (2, 'regress_flashback_other', 'b'),
  (3, 'regress_flashback_reader', NULL);
RESET ROLE;
SELECT clock_timestamp() AS t \gset
DELETE FROM notes;

-- only the owner and superusers
SELECT * FROM polar_flashback_rows(NULL::flashed.notes, :'t') ORDER BY id;
SET ROLE regress_flashback_owner;
SELECT * FROM polar_flashback_rows(NULL::notes, :'t') ORDER BY id;
SELECT polar_flashback_count('notes', :'t');
GRANT ALL ON notes TO regress_flashback_reader, regress_flashback_other;
SET ROLE regress_flashback_reader;
SELECT * FROM polar_flashback_rows(NULL::flashed.notes, :'t');
SELECT polar_flashback_count('flashed.notes', :'t');
SELECT polar_flashback_table('flashed.notes', :'t');
SELECT * FROM polar_flashback_check('flashed.notes', :'t');
SELECT * FROM polar_flashback_visible_rows(NULL::flashed.notes, :'t');
RESET ROLE;

-- a role that was granted it sees what SELECT * would show it now
GRANT EXECUTE ON FUNCTION polar_flashback_visible_rows TO regress_flashback_reader, regress_flashback_other;
SET ROLE regress_flashback_reader;
SELECT * FROM polar_flashback_visible_rows(NULL::flashed.notes, :'t') ORDER BY id;
SELECT polar_flashback_visible_rows(NULL::flashed.notes, :'t');
SET ROLE regress_flashback_owner;
SELECT * FROM polar_flashback_visible_rows(NULL::notes, :'t');
ALTER TABLE notes ENABLE ROW LEVEL SECURITY;
SET ROLE regress_flashback_reader;
SELECT * FROM polar_flashback_visible_rows(NULL::flashed.notes, :'t') ORDER BY id;
SET ROLE regress_flashback_owner;
CREATE POLICY own ON notes USING (author = current_user);
SET ROLE regress_flashback_reader;
SELECT * FROM polar_flashback_visible_rows(NULL::flashed.notes, :'t') ORDER BY id;
SET row_security = off;
SELECT * FROM polar_flashback_visible_rows(NULL::flashed.notes, :'t') ORDER BY id;
RESET row_security;
SET ROLE regress_flashback_other;
SELECT * FROM polar_flashback_visible_rows(NULL::flashed.notes, :'t') ORDER BY id;
SET ROLE regress_flashback_super;
SELECT count(*) FROM polar_flashback_visible_rows(NULL::flashed.notes, :'t');
RESET ROLE;

-- the policy comes before a condition that would show what it hides
CREATE FUNCTION flashed.leak(text) RETURNS bool LANGUAGE plpgsql COST 0.0000001 AS
$$BEGIN RAISE WARNING 'saw %', $1; RETURN true; END$$;
SET ROLE regress_flashback_other;
SELECT * FROM polar_flashback_visible_rows(NULL::flashed.notes, :'t', 'flashed.leak(secret)');
RESET ROLE;
ALTER FUNCTION flashed.leak LEAKPROOF;
SET ROLE regress_flashback_other;
SELECT id FROM polar_flashback_visible_rows(NULL::flashed.notes, :'t', 'flashed.leak(secret)');
RESET ROLE;

-- a policy with a subquery, and its permissions
SET ROLE regress_flashback_owner;
CREATE TABLE members (name text);
INSERT INTO members VALUES ('regress_flashback_other');
DROP POLICY own ON notes;
CREATE POLICY members ON notes USING (EXISTS (SELECT FROM flashed.members m WHERE m.name = current_user AND notes.id < 3));
SET ROLE regress_flashback_other;
SELECT id FROM polar_flashback_visible_rows(NULL::flashed.notes, :'t') ORDER BY id;
RESET ROLE;
GRANT SELECT ON flashed.members TO regress_flashback_other;
SET ROLE regress_flashback_other;
SELECT id FROM polar_flashback_visible_rows(NULL::flashed.notes, :'t') ORDER BY id;
RESET ROLE;

-- columns: all or none, as SELECT *
SET ROLE regress_flashback_owner;
REVOKE ALL ON notes FROM regress_flashback_other;
GRANT SELECT (id, author) ON notes TO regress_flashback_other;
SET ROLE regress_flashback_other;
SELECT id, author FROM flashed.notes;
SELECT id FROM polar_flashback_visible_rows(NULL::flashed.notes, :'t');
SELECT id FROM polar_flashback_visible_rows(NULL::flashed.notes, :'t', 'secret = ''b''');
-- or those that are named, if it may select them; policies see all
RESET ROLE;
SELECT polar_flashback_visible_columns(NULL::flashed.notes, :'t', '{id}') LIMIT 0;
SET ROLE regress_flashback_other;
SELECT * FROM polar_flashback_visible_columns(NULL::flashed.notes, :'t', '{id,author}');
RESET ROLE;
GRANT EXECUTE ON FUNCTION polar_flashback_visible_columns TO regress_flashback_other;
SET ROLE regress_flashback_other;
SELECT * FROM polar_flashback_visible_columns(NULL::flashed.notes, :'t', '{id,author}') ORDER BY id;
SELECT * FROM polar_flashback_visible_columns(NULL::flashed.notes, :'t', '{author,author}', 'id = 2');
SELECT count(*) FROM polar_flashback_visible_columns(NULL::flashed.notes, :'t', '{}');
SELECT * FROM polar_flashback_visible_columns(NULL::flashed.notes, :'t', '{id,secret}');
SELECT * FROM polar_flashback_visible_columns(NULL::flashed.notes, :'t', '{id}', 'secret = ''b''');
SELECT * FROM polar_flashback_visible_columns(NULL::flashed.notes, :'t', '{id}', 'notes IS NOT NULL');
SELECT * FROM polar_flashback_visible_columns(NULL::flashed.notes, :'t', '{gone}');
SELECT * FROM polar_flashback_visible_columns(NULL::flashed.notes, :'t', '{ctid}');
SELECT * FROM polar_flashback_visible_columns(NULL::flashed.notes, :'t', '{NULL}');
SELECT * FROM polar_flashback_visible_columns(NULL::flashed.notes, :'t', NULL);
SET ROLE regress_flashback_owner;
CREATE POLICY secrets ON notes AS RESTRICTIVE USING (secret = 'b');
SET ROLE regress_flashback_other;
SELECT * FROM polar_flashback_visible_columns(NULL::flashed.notes, :'t', '{id}') ORDER BY id;
SET ROLE regress_flashback_owner;
DROP POLICY secrets ON notes;
GRANT SELECT (secret) ON notes TO regress_flashback_other;
SET ROLE regress_flashback_other;
SELECT id FROM polar_flashback_visible_rows(NULL::flashed.notes, :'t') ORDER BY id;
RESET ROLE;

-- what cannot be decided is the owner's: a policy on what rows did not have
SET ROLE regress_flashback_owner;
GRANT SELECT ON notes TO regress_flashback_other;
ALTER TABLE notes ADD COLUMN hidden bool DEFAULT true;
CREATE POLICY hidden ON notes AS RESTRICTIVE USING (hidden IS NOT TRUE);
SET ROLE regress_flashback_other;
SELECT id FROM polar_flashback_visible_rows(NULL::flashed.notes, :'t') ORDER BY id;
SET ROLE regress_flashback_owner;
DROP POLICY hidden ON notes;
CREATE POLICY anything ON notes AS RESTRICTIVE USING (notes IS NOT NULL OR true);
SET ROLE regress_flashback_other;
SELECT id FROM polar_flashback_visible_rows(NULL::flashed.notes, :'t') ORDER BY id;
SET ROLE regress_flashback_owner;
DROP POLICY anything ON notes;
CREATE POLICY where_it_is ON notes AS RESTRICTIVE USING (ctid IS NOT NULL);
SET ROLE regress_flashback_other;
SELECT id FROM polar_flashback_visible_rows(NULL::flashed.notes, :'t') ORDER BY id;
SET ROLE regress_flashback_owner;
DROP POLICY where_it_is ON notes;
SET ROLE regress_flashback_other;
SELECT id, hidden FROM polar_flashback_visible_rows(NULL::flashed.notes, :'t') ORDER BY id;
-- nor what was on a column that is gone
SET ROLE regress_flashback_owner;
ALTER TABLE notes DROP COLUMN secret;
SET ROLE regress_flashback_other;
SELECT id FROM polar_flashback_visible_rows(NULL::flashed.notes, :'t') ORDER BY id;
-- also when its row in the catalog has been frozen
RESET ROLE;
VACUUM (FREEZE) pg_attribute;
SET ROLE regress_flashback_other;
SELECT id FROM polar_flashback_visible_rows(NULL::flashed.notes, :'t') ORDER BY id;
SET ROLE regress_flashback_owner;
SELECT * FROM polar_flashback_rows(NULL::notes, :'t') ORDER BY id;
SELECT clock_timestamp() AS later \gset
SET ROLE regress_flashback_other;
SELECT count(*) FROM polar_flashback_visible_rows(NULL::flashed.notes, :'later');
RESET ROLE;

-- the result belongs to the owner, and to nobody else whatever the defaults
ALTER DEFAULT PRIVILEGES FOR ROLE regress_flashback_owner GRANT ALL ON TABLES TO PUBLIC;
ALTER DEFAULT PRIVILEGES FOR ROLE regress_flashback_owner IN SCHEMA flashed GRANT SELECT ON TABLES TO regress_flashback_other;
ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC;
SELECT result AS r, rows FROM polar_flashback_table('flashed.notes', :'t', 'by_superuser') \gset
SELECT relowner::regrole, relacl, relrowsecurity, reltoastrelid <> 0 AS toast FROM pg_class WHERE relname = 'by_superuser';
SELECT regexp_replace(obj_description(:'r'::regclass), '(as of )[^(]*\(table \d+, (columns \d+), position \S+, point \d+\)', '\1... (\2)');
SET ROLE regress_flashback_owner;
SELECT result AS r, rows FROM polar_flashback_table('notes', :'t') \gset
SELECT relowner::regrole, relacl FROM pg_class WHERE oid = :'r'::regclass;
SELECT count(*) FROM by_superuser;
SET ROLE regress_flashback_other;
SELECT * FROM flashed.by_superuser;
RESET ROLE;
ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM PUBLIC;
ALTER DEFAULT PRIVILEGES FOR ROLE regress_flashback_owner REVOKE ALL ON TABLES FROM PUBLIC;
ALTER DEFAULT PRIVILEGES FOR ROLE regress_flashback_owner IN SCHEMA flashed REVOKE SELECT ON TABLES FROM regress_flashback_other;
DROP TABLE flashed.by_superuser;

-- a partitioned table's policies are those of the parent, and so for its columns
SET ROLE regress_flashback_owner;
CREATE TABLE parted (id int, author text) PARTITION BY LIST (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1);
CREATE TABLE parted_2 (author text, id int);
ALTER TABLE parted ATTACH PARTITION parted_2 DEFAULT;
INSERT INTO parted VALUES (1, 'regress_flashback_other'), (2, 'regress_flashback_other'), (3, 'somebody');
ALTER TABLE parted ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON parted USING (author = current_user);
GRANT SELECT ON parted TO regress_flashback_other;
SELECT clock_timestamp() AS t3 \gset
DELETE FROM parted;
SET ROLE regress_flashback_other;
SELECT * FROM polar_flashback_visible_rows(NULL::flashed.parted, :'t3') ORDER BY id;
SELECT * FROM polar_flashback_visible_rows(NULL::flashed.parted_1, :'t3') ORDER BY id;
SET ROLE regress_flashback_owner;
ALTER TABLE parted ADD COLUMN hidden bool;
CREATE POLICY hidden ON parted AS RESTRICTIVE USING (hidden IS NOT TRUE);
SET ROLE regress_flashback_other;
SELECT * FROM polar_flashback_visible_rows(NULL::flashed.parted, :'t3') ORDER BY id;
RESET ROLE;

-- it is made only where the caller may create tables
CREATE SCHEMA elsewhere;
SET ROLE regress_flashback_owner;
SELECT polar_flashback_table('notes', :'t', NULL, 'elsewhere');
SELECT polar_flashback_table('notes', :'t', NULL, 'pg_catalog');
SELECT polar_flashback_table('notes', :'t', NULL, 'pg_temp');
SELECT polar_flashback_table('notes', :'t', NULL, 'nowhere');
RESET ROLE;
ALTER SCHEMA flashed OWNER TO regress_flashback_super;
SET ROLE regress_flashback_owner;
SELECT polar_flashback_table('notes', :'t', 'without_create');
RESET ROLE;
ALTER SCHEMA flashed OWNER TO regress_flashback_owner;

-- an owner's expressions do not run with the rights of a superuser who flashes back
SET ROLE regress_flashback_owner;
CREATE TABLE trap (id int, v text GENERATED ALWAYS AS (upper(id::text)) STORED);
CREATE FUNCTION who(int) RETURNS text LANGUAGE plpgsql IMMUTABLE AS
$$BEGIN
  IF current_user <> 'regress_flashback_owner' THEN
    RAISE WARNING 'ran as %', current_user;
  END IF;
  RETURN 'x';
END$$;
CREATE INDEX trap_index ON trap (who(id)) WHERE who(id) = 'x';
ALTER TABLE trap ADD CHECK (who(id) = 'x');
CREATE FUNCTION fire() RETURNS trigger LANGUAGE plpgsql AS
$$BEGIN RAISE WARNING 'fired as %', current_user; RETURN NEW; END$$;
INSERT INTO trap VALUES (1), (2);
CREATE TRIGGER fire BEFORE INSERT ON trap FOR EACH ROW EXECUTE FUNCTION fire();
CREATE FUNCTION shadow(int, int) RETURNS bool LANGUAGE plpgsql AS
$$BEGIN RAISE WARNING 'shadowed as %', current_user; RETURN true; END$$;
CREATE OPERATOR flashed.= (FUNCTION = shadow, LEFTARG = int, RIGHTARG = int);
SET ROLE regress_flashback_super;
SELECT clock_timestamp() AS t2 \gset
SET search_path = public;
SELECT rows FROM polar_flashback_table('flashed.trap', :'t2', 'trapped', with_indexes => true, condition => 'id = 1');
SELECT * FROM flashed.trapped;
SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 'flashed.trapped'::regclass;
RESET ROLE;
SET search_path = public;

DROP OWNED BY regress_flashback_owner, regress_flashback_reader, regress_flashback_other CASCADE;
DROP SCHEMA elsewhere;
DROP ROLE regress_flashback_owner, regress_flashback_reader, regress_flashback_other, regress_flashback_super;
