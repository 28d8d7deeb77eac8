-- rows of a result are put back
SET client_min_messages = warning;
CREATE TABLE t (id int PRIMARY KEY, a text, n numeric, u text UNIQUE, day date DEFAULT '2026-01-01');
INSERT INTO t SELECT i, 'a' || i, i, 'u' || i FROM generate_series(1, 100) i;
SELECT clock_timestamp() AS t \gset
CREATE VIEW image AS SELECT count(*), md5(string_agg(t::text, ',' ORDER BY id)) FROM t;
CREATE TABLE was AS SELECT * FROM image;
CREATE FUNCTION change() RETURNS void LANGUAGE sql AS $$
  DELETE FROM t WHERE id <= 10;
  UPDATE t SET a = 'b' WHERE id BETWEEN 21 AND 25;
  UPDATE t SET n = n + 0.0 WHERE id = 26;
  INSERT INTO t VALUES (101, 'new', 1, 'u101'), (102, 'new', 1, 'u1'), (103, 'new', NULL, NULL);
$$;
SELECT change();
SELECT result FROM polar_flashback_table('t', :'t', 'old_t') \gset

-- what would be done, and nothing of it
CREATE TABLE before AS SELECT * FROM image;
SELECT * FROM polar_flashback_merge(:'result', 't', true, false, false, dry_run => true);
SELECT * FROM polar_flashback_merge(:'result', 't', false, true, false, dry_run => true);
SELECT * FROM polar_flashback_merge(:'result', 't', false, false, true, dry_run => true);
SELECT * FROM polar_flashback_merge(:'result', 't', true, true, true, dry_run => true);
SELECT * FROM polar_flashback_merge(:'result', 't', false, false, false);
SELECT image = before AS unchanged FROM image, before;

-- counts that are expected
\set VERBOSITY sqlstate
SELECT * FROM polar_flashback_merge(:'result', 't', true, true, true, expected_inserted => 9);
\set VERBOSITY default
SELECT * FROM polar_flashback_merge(:'result', 't', true, true, true, expected_inserted => 9);
SELECT * FROM polar_flashback_merge(:'result', 't', true, true, true, expected_restored => 7);
SELECT * FROM polar_flashback_merge(:'result', 't', true, true, true, expected_deleted => 0);
SELECT * FROM polar_flashback_merge(:'result', 't', true, false, false, expected_inserted => 10);
SELECT image = before AS unchanged FROM image, before;

-- those that are chosen
SELECT * FROM polar_flashback_merge(:'result', 't', true, true, true, keys => '{}');
SELECT * FROM polar_flashback_merge(:'result', 't', true, true, true, keys => '{{1},{21},{101},{50},{1000}}', dry_run => true);
SELECT * FROM polar_flashback_merge(:'result', 't', true, false, true, keys => '{{1},{21},{102},{1}}', dry_run => true);
SELECT * FROM polar_flashback_merge(:'result', 't', true, true, true, condition => 'id < 5 OR a = ''new'' OR n = 22', dry_run => true);
SELECT * FROM polar_flashback_merge(:'result', 't', true, true, true, keys => '{{1},{2}}', condition => 'id = 2', dry_run => true);
SELECT * FROM polar_flashback_merge(:'result', 't', true, true, true, keys => '{1}');
SELECT * FROM polar_flashback_merge(:'result', 't', true, true, true, keys => '{{1,2}}');
SELECT * FROM polar_flashback_merge(:'result', 't', true, true, true, keys => '{{one}}');
SELECT * FROM polar_flashback_merge(:'result', 't', true, true, true, keys => '{{NULL}}');
SELECT * FROM polar_flashback_merge(:'result', 't', true, true, true, condition => 'nothing');
SELECT * FROM polar_flashback_merge(:'result', 't', true, true, true, condition => 'id = 1) OR (true');
SELECT * FROM polar_flashback_merge(:'result', 't', NULL, true, true);
SELECT * FROM polar_flashback_merge('t', 't', true, true, true);
SELECT * FROM polar_flashback_merge('t', :'result', true, true, true);
SELECT image = before AS unchanged FROM image, before;

-- all of it: the table is what it was
SELECT * FROM polar_flashback_merge(:'result', 't', true, true, true, expected_inserted => 10, expected_restored => 6, expected_deleted => 3);
SELECT image = was AS as_then FROM image, was;
SELECT kind, rows FROM polar_flashback_compare('t', result => :'result', samples => 0) WHERE kind IN ('same', 'added');
SELECT * FROM polar_flashback_merge(:'result', 't', true, true, true);

-- in a transaction, with what came before in it; rolled back by its end
BEGIN;
SELECT change();
SELECT * FROM polar_flashback_merge(:'result', 't', true, false, false, keys => '{{2}}');
SELECT * FROM t WHERE id < 5;
ROLLBACK;
SELECT image = was AS as_then FROM image, was;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT * FROM polar_flashback_merge(:'result', 't', true, false, false);
ROLLBACK;
BEGIN READ ONLY;
SELECT * FROM polar_flashback_merge(:'result', 't', true, false, false, dry_run => true);
ROLLBACK;
-- a failed dry run leaves the transaction of the caller as any error does
BEGIN;
SAVEPOINT s;
ALTER TABLE t ADD CHECK (id <> 2) NOT VALID;
DELETE FROM t WHERE id = 2;
SELECT * FROM polar_flashback_merge(:'result', 't', true, false, false, dry_run => true);
ROLLBACK TO s;
SELECT count(*) FROM t;
COMMIT;

-- columns: those added since get their default, or stay as they are; identity and generated ones
DROP TABLE :result;
DROP VIEW image;
DROP TABLE t, was, before;
CREATE TABLE t (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, "quo""ted column" text, gone int,
  s text GENERATED ALWAYS AS (upper("quo""ted column")) STORED, v text GENERATED ALWAYS AS (lower("quo""ted column")) VIRTUAL);
ALTER TABLE t DROP COLUMN gone;
INSERT INTO t ("quo""ted column") SELECT 'X' || i FROM generate_series(1, 5) i;
SELECT clock_timestamp() AS t \gset
DELETE FROM t WHERE id = 1;
UPDATE t SET "quo""ted column" = 'y' WHERE id = 2;
ALTER TABLE t ADD COLUMN later int DEFAULT 7;
UPDATE t SET later = 8 WHERE id = 2;
SELECT result FROM polar_flashback_table('t', :'t', 'old_t') \gset
SELECT * FROM polar_flashback_merge(:'result', 't', true, true, true, condition => 'v LIKE ''x%''');
SELECT * FROM t ORDER BY id;
SELECT * FROM polar_flashback_merge(:'result', 't', true, true, true);
DROP TABLE t, :result;
-- an identity that is no key cannot be set
CREATE TABLE t (k int PRIMARY KEY, id int GENERATED ALWAYS AS IDENTITY, v text);
INSERT INTO t VALUES (1, DEFAULT, 'a'), (2, DEFAULT, 'b');
SELECT clock_timestamp() AS t \gset
UPDATE t SET v = 'c', id = DEFAULT WHERE k = 1;
UPDATE t SET v = 'd' WHERE k = 2;
SELECT result FROM polar_flashback_table('t', :'t', 'old_t') \gset
SELECT * FROM polar_flashback_merge(:'result', 't', true, true, true, condition => 'k = 2');
SELECT * FROM polar_flashback_merge(:'result', 't', true, true, true);
DROP TABLE t, :result;

-- triggers and foreign keys apply; deferred ones at once
CREATE TABLE parent (id int PRIMARY KEY, boss int REFERENCES parent, v text);
CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED);
INSERT INTO parent VALUES (1, 2, 'a'), (2, 1, 'b'), (3, 3, 'c');
INSERT INTO child VALUES (1, 1), (2, 2), (3, 3);
SELECT clock_timestamp() AS t \gset
INSERT INTO parent VALUES (4, 4, 'd');
INSERT INTO child VALUES (4, 4);
UPDATE parent SET boss = NULL WHERE boss IN (1, 2);
DELETE FROM parent WHERE id IN (1, 2);
CREATE TABLE log (n serial, what text);
CREATE FUNCTION note_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO public.log (what) VALUES (format('%s %s %s', tg_when, tg_op, tg_level));
  RETURN coalesce(NEW, OLD);
END$$;
CREATE TRIGGER rows BEFORE INSERT OR UPDATE OR DELETE ON parent FOR EACH ROW EXECUTE FUNCTION note_event();
CREATE TRIGGER statements AFTER INSERT OR UPDATE OR DELETE ON parent FOR EACH STATEMENT EXECUTE FUNCTION note_event();
CREATE CONSTRAINT TRIGGER late AFTER INSERT ON parent DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note_event();
SELECT result AS old_parent FROM polar_flashback_table('parent', :'t') \gset
SELECT result AS old_child FROM polar_flashback_table('child', :'t') \gset
SELECT * FROM polar_flashback_merge(:'old_child', 'child', true, true, true);
SELECT * FROM polar_flashback_merge(:'old_parent', 'parent', true, true, true, dry_run => true);
SELECT count(*) FROM log;
SELECT * FROM polar_flashback_merge(:'old_parent', 'parent', true, true, true);
SELECT what, count(*) FROM log GROUP BY what ORDER BY what;
SELECT * FROM parent ORDER BY id;
SELECT * FROM polar_flashback_merge(:'old_child', 'child', true, true, true);
SELECT * FROM child ORDER BY id;
-- a trigger that keeps rows out makes conflicts
ALTER TABLE parent DROP COLUMN boss;
ALTER TABLE child DROP CONSTRAINT child_parent_fkey;
CREATE FUNCTION keep_out() RETURNS trigger LANGUAGE plpgsql AS
$$BEGIN IF NEW.id = 1 THEN RETURN NULL; END IF; RETURN NEW; END$$;
CREATE TRIGGER zz BEFORE INSERT OR UPDATE ON parent FOR EACH ROW EXECUTE FUNCTION keep_out();
DELETE FROM parent WHERE id IN (1, 2);
UPDATE parent SET v = 'changed' WHERE id = 3;
SELECT * FROM polar_flashback_merge(:'old_parent', 'parent', true, true, true);
SELECT * FROM parent ORDER BY id;
DROP TABLE child, parent, log, :old_parent, :old_child;
DROP FUNCTION note_event, keep_out;

-- without a key only what is missing, as often as it is; conflicts with a partial index
CREATE TABLE bag (a int, b text);
CREATE UNIQUE INDEX bag_b ON bag (b) WHERE a > 10;
INSERT INTO bag VALUES (1, 'x'), (1, 'x'), (1, 'x'), (2, NULL), (NULL, NULL), (11, 'y'), (12, 'z');
SELECT clock_timestamp() AS t \gset
DELETE FROM bag;
INSERT INTO bag VALUES (1, 'x'), (13, 'y'), (3, '');
SELECT result FROM polar_flashback_table('bag', :'t') \gset
SELECT * FROM polar_flashback_merge(:'result', 'bag', true, true, false);
SELECT * FROM polar_flashback_merge(:'result', 'bag', true, false, false, keys => '{}');
SELECT * FROM polar_flashback_merge(:'result', 'bag', true, false, false);
SELECT * FROM bag ORDER BY a, b;
-- a deferrable constraint: a conflict fails
CREATE TABLE late (id int PRIMARY KEY DEFERRABLE, u int UNIQUE NOT NULL);
INSERT INTO late VALUES (1, 1), (2, 2);
SELECT clock_timestamp() AS t \gset
DELETE FROM late WHERE u = 1;
INSERT INTO late VALUES (1, 3);
SELECT result AS old FROM polar_flashback_table('late', :'t') \gset
SELECT * FROM polar_flashback_merge(:'old', 'late', true, false, false);
SELECT * FROM polar_flashback_merge(:'old', 'late', true, false, true);
SELECT * FROM late ORDER BY id;
DROP TABLE bag, late, :result, :old;

-- what is refused: rules, keys that do not tell the rows of a result apart
CREATE TABLE t (id int PRIMARY KEY);
INSERT INTO t VALUES (1);
SELECT clock_timestamp() AS t \gset
SELECT result FROM polar_flashback_table('t', :'t', 'old_t') \gset
-- another row with the key of one that is there is in conflict with it
INSERT INTO :result VALUES (1);
SELECT * FROM polar_flashback_merge(:'result', 't', true, true, true);
INSERT INTO :result VALUES (7), (7);
SELECT * FROM polar_flashback_merge(:'result', 't', true, true, true);
DELETE FROM :result;
INSERT INTO :result VALUES (NULL);
SELECT * FROM polar_flashback_merge(:'result', 't', true, true, true);
DELETE FROM :result;
CREATE RULE r AS ON DELETE TO t DO INSTEAD NOTHING;
SELECT * FROM polar_flashback_merge(:'result', 't', true, true, true);
DROP RULE r ON t;
SELECT * FROM polar_flashback_merge(:'result', 't', true, true, true);
-- a table that was dropped and made again takes what its results have
INSERT INTO :result VALUES (5);
DROP TABLE t;
CREATE TABLE t (id int PRIMARY KEY, v int DEFAULT 3);
SELECT * FROM polar_flashback_merge(:'result', 't', true, true, true);
ALTER TABLE :result ADD v int;
SELECT * FROM polar_flashback_merge(:'result', 't', true, true, true);
SELECT * FROM t;
DROP TABLE t, :result;

-- partitions: rows find theirs, and go back to it
CREATE TABLE parted (id int, region text, v text, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
CREATE TABLE parted_a PARTITION OF parted FOR VALUES IN ('a');
CREATE TABLE parted_b (v text, gone int, region text NOT NULL, id int NOT NULL);
ALTER TABLE parted_b DROP COLUMN gone;
ALTER TABLE parted ATTACH PARTITION parted_b DEFAULT;
INSERT INTO parted SELECT i, CASE WHEN i % 2 = 0 THEN 'a' ELSE 'b' END, 'v' || i FROM generate_series(1, 10) i;
SELECT clock_timestamp() AS t \gset
DELETE FROM parted WHERE id <= 4;
UPDATE parted SET v = 'w' WHERE id IN (5, 6);
UPDATE parted SET region = 'c' WHERE id = 8;
SELECT result FROM polar_flashback_table('parted', :'t') \gset
SELECT * FROM polar_flashback_merge(:'result', 'parted', true, true, true, keys => '{{5,b},{1,b}}');
SELECT * FROM polar_flashback_merge(:'result', 'parted', true, true, true);
SELECT tableoid::regclass, * FROM parted ORDER BY id;
DROP TABLE parted, :result;
-- the children of a table are left alone
CREATE TABLE parent (id int PRIMARY KEY, v text);
CREATE TABLE child () INHERITS (parent);
INSERT INTO parent VALUES (1, 'a');
INSERT INTO child VALUES (2, 'b');
SELECT clock_timestamp() AS t \gset
UPDATE parent SET v = 'c';
SELECT result FROM polar_flashback_table('parent', :'t') \gset
SELECT * FROM polar_flashback_merge(:'result', 'parent', true, true, true);
SELECT tableoid::regclass, * FROM parent ORDER BY id;
DROP TABLE parent, child, :result;

-- rows that need a file leave none open
SET client_min_messages = warning;
SET work_mem = '64kB';
CREATE TABLE large (id int PRIMARY KEY, v text);
INSERT INTO large SELECT g, repeat('x', 100) FROM generate_series(1, 5000) g;
SELECT clock_timestamp() AS t \gset
DELETE FROM large;
SELECT result FROM polar_flashback_table('large', :'t', 'old_large') \gset
SELECT * FROM polar_flashback_merge(:'result', 'large', true, true, true, dry_run => true);
SELECT * FROM polar_flashback_merge(:'result', 'large', true, true, true);
DROP TABLE large, old_large;
RESET work_mem;

-- an error while rows are looked for by pages: the result is read instead if the log was in the way, any other ends the merge
CREATE TABLE pages (id int PRIMARY KEY);
INSERT INTO pages SELECT g FROM generate_series(1, 100) g;
SELECT clock_timestamp() AS t \gset
DELETE FROM pages WHERE id <= 10;
SELECT result FROM polar_flashback_table('pages', :'t', 'old_pages') \gset
CREATE SEQUENCE calls;
CREATE FUNCTION raise_once(state text) RETURNS bool LANGUAGE plpgsql AS $$
BEGIN
  IF nextval('public.calls') = 1 THEN
    RAISE EXCEPTION 'raised' USING ERRCODE = state;
  END IF;
  RETURN true;
END$$;
CREATE FUNCTION merge_raising(state text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM setval('calls', 1, false);
  RETURN inserted || ' inserted' FROM polar_flashback_merge('old_pages', 'pages', true, false, false, dry_run => true,
    condition => format('public.raise_once(%L)', state));
EXCEPTION WHEN OTHERS OR query_canceled THEN
  RETURN sqlstate || ': ' || sqlerrm;
END$$;
SELECT state, merge_raising(state) FROM unnest(ARRAY[
  -- a moment that is not to be had, a log that is damaged or cannot be read
  '22023', '55000', '58P01', '58030', 'XX001',
  -- conflicts with other transactions and with recovery, deadlocks
  '40001', '40P01',
  -- no memory, no room, temporary files that are too large
  '53200', '53100', '53400',
  -- a cancel, a shutdown, a lock that took too long
  '57014', '57P01', '55P03',
  -- what somebody wrote, a bug
  '22012', 'P0001', 'XX000']) state;
DROP TABLE pages, old_pages;
DROP FUNCTION merge_raising, raise_once;
-- while the reason of a conflict is looked for: what forbids the row is one, any other error ends the merge
CREATE TABLE conflicting (id int PRIMARY KEY, u int UNIQUE);
INSERT INTO conflicting VALUES (1, 1);
SELECT clock_timestamp() AS t \gset
UPDATE conflicting SET id = 2;
SELECT result FROM polar_flashback_table('conflicting', :'t', 'old_conflicting') \gset
CREATE FUNCTION raise_second() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF nextval('public.calls') % 2 = 0 THEN
    RAISE EXCEPTION 'raised' USING ERRCODE = tg_argv[0];
  END IF;
  RETURN new;
END$$;
SELECT setval('calls', 2);
CREATE TRIGGER raises BEFORE INSERT ON conflicting FOR EACH ROW EXECUTE FUNCTION raise_second('P0001');
SELECT * FROM polar_flashback_merge('old_conflicting', 'conflicting', true, false, false);
CREATE OR REPLACE TRIGGER raises BEFORE INSERT ON conflicting FOR EACH ROW EXECUTE FUNCTION raise_second('40P01');
\set VERBOSITY sqlstate
SELECT * FROM polar_flashback_merge('old_conflicting', 'conflicting', true, false, false);
\set VERBOSITY default
DROP TABLE conflicting, old_conflicting;
DROP FUNCTION raise_second;
DROP SEQUENCE calls;
RESET client_min_messages;
