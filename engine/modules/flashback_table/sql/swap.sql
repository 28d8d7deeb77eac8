-- a table and a result exchange their rows
SET client_min_messages = warning;
CREATE TABLE groups (id int PRIMARY KEY);
CREATE TABLE t (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, gone text, v text UNIQUE, g int REFERENCES groups,
  s text GENERATED ALWAYS AS (upper(v)) STORED, w text GENERATED ALWAYS AS (lower(v)) VIRTUAL, CHECK (v <> 'forbidden'));
CREATE TABLE child (t int REFERENCES t);
CREATE VIEW seen AS SELECT id, v, s, w FROM t;
CREATE INDEX by_length ON t (length(v));
CREATE ROLE regress_swap_reader;
GRANT SELECT ON t TO regress_swap_reader;
ALTER TABLE t DROP COLUMN gone;
INSERT INTO groups VALUES (1), (2);
INSERT INTO t (v, g) SELECT repeat('X' || i, CASE WHEN i = 3 THEN 2000 ELSE 1 END), 1 FROM generate_series(1, 5) i;
ALTER TABLE t ALTER v SET STORAGE EXTERNAL;
INSERT INTO t (v, g) SELECT string_agg('Y' || i, ''), 2 FROM generate_series(1, 500) i;
INSERT INTO child VALUES (1);
SELECT clock_timestamp() AS t \gset
CREATE VIEW image AS SELECT count(*), sum(length(v)), md5(string_agg(t::text, ',' ORDER BY id)) FROM t;
CREATE TABLE was AS SELECT * FROM image;
DELETE FROM t WHERE id IN (2, 6);
UPDATE t SET v = 'Z' WHERE id = 3;
INSERT INTO t (v) VALUES ('new'), ('newer');
CREATE TABLE is_now AS SELECT * FROM image;
CREATE FUNCTION fire() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE WARNING 'fired'; RETURN coalesce(NEW, OLD); END$$;
CREATE TRIGGER fire BEFORE INSERT OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION fire();
SELECT result FROM polar_flashback_table('t', :'t', 'old_t', with_indexes => true) \gset
SELECT 't'::regclass::oid AS oid, 'old_t'::regclass::oid AS old_oid \gset
SELECT relfilenode FROM pg_class WHERE relname = 't' \gset

SELECT * FROM polar_flashback_swap('old_t', 't');
SELECT image = was AS as_then FROM image, was;
SELECT count(*), sum(length(v)) = (SELECT sum FROM is_now) AS as_before FROM old_t;
SELECT id, left(v, 5) AS v, g, left(s, 5) AS s, left(w, 5) AS w FROM old_t ORDER BY id;
-- both are what they were
SELECT 't'::regclass::oid = :oid AS same, 'old_t'::regclass::oid = :old_oid AS same_result, relfilenode <> :relfilenode AS rewritten
  FROM pg_class WHERE oid = 't'::regclass;
SELECT count(*) FROM pg_class WHERE relname LIKE 'pg_temp%';
SELECT has_table_privilege('regress_swap_reader', 't', 'SELECT') AS granted;
SELECT count(*) FROM seen;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM t WHERE length(v) = 2;
SELECT id FROM t WHERE length(v) = 2 ORDER BY id;
SELECT id FROM old_t WHERE length(v) = 2 ORDER BY id;
RESET enable_seqscan;
INSERT INTO t (v) VALUES ('after');
SELECT max(id) FROM t;
DELETE FROM t WHERE v = 'after';
SELECT result_name, relation_name, target_time > :'t' AS later FROM polar_flashback_results() WHERE result_name = 'old_t';
SELECT regexp_replace(obj_description('old_t'::regclass), 'as of \S+ \S+\+00 \(table \d+', 'as of ... (table');
-- and back
SELECT kind, rows FROM polar_flashback_compare('t', result => 'old_t', samples => 0);
BEGIN;
SELECT * FROM polar_flashback_swap('old_t', 't');
SELECT image = is_now AS as_before FROM image, is_now;
ROLLBACK;
SELECT image = was AS as_then FROM image, was;
SELECT * FROM polar_flashback_swap('old_t', 't');
SELECT image = is_now AS as_before FROM image, is_now;

-- constraints are checked: rows that others refer to, rows that refer to others, not null, check, unique
INSERT INTO child VALUES (8);
SELECT * FROM polar_flashback_swap('old_t', 't');
DELETE FROM child WHERE t = 8;
DELETE FROM t WHERE g = 2;
DELETE FROM groups WHERE id = 2;
SELECT * FROM polar_flashback_swap('old_t', 't');
INSERT INTO groups VALUES (2);
UPDATE old_t SET v = 'forbidden' WHERE id = 1;
SELECT * FROM polar_flashback_swap('old_t', 't');
DROP INDEX old_t_v_idx, old_t_id_idx;
UPDATE old_t SET v = 'X4' WHERE id = 1;
SELECT * FROM polar_flashback_swap('old_t', 't');
UPDATE old_t SET v = 'X1', id = NULL WHERE id = 1;
SELECT * FROM polar_flashback_swap('old_t', 't');
UPDATE old_t SET id = 1 WHERE id IS NULL;
SELECT image = is_now AS as_before, count(*) FROM image, is_now GROUP BY 1;

-- columns must be the same on both sides
ALTER TABLE t ADD COLUMN later int;
SELECT * FROM polar_flashback_swap('old_t', 't');
ALTER TABLE old_t ADD COLUMN later int8;
SELECT * FROM polar_flashback_swap('old_t', 't');
ALTER TABLE old_t DROP COLUMN later;
ALTER TABLE old_t ADD COLUMN later int, ADD COLUMN more int;
SELECT * FROM polar_flashback_swap('old_t', 't');
ALTER TABLE old_t DROP COLUMN more;

-- what is refused
SELECT * FROM polar_flashback_swap(NULL, 't');
SELECT * FROM polar_flashback_swap('old_t', NULL);
SELECT * FROM polar_flashback_swap('t', 'old_t');
SELECT * FROM polar_flashback_swap('t', 't');
SELECT * FROM polar_flashback_swap('was', 't');
BEGIN READ ONLY;
SELECT * FROM polar_flashback_swap('old_t', 't');
ROLLBACK;
CREATE PUBLICATION p FOR TABLE t;
SELECT * FROM polar_flashback_swap('old_t', 't');
DROP PUBLICATION p;
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM t;
FETCH 1 FROM c \g /dev/null
SELECT * FROM polar_flashback_swap('old_t', 't');
ROLLBACK;
CREATE ROLE regress_swap_owner;
ALTER TABLE old_t OWNER TO regress_swap_owner;
SELECT * FROM polar_flashback_swap('old_t', 't');
SET ROLE regress_swap_owner;
SELECT * FROM polar_flashback_swap('old_t', 't');
RESET ROLE;
ALTER TABLE old_t OWNER TO CURRENT_USER;
SELECT * FROM polar_flashback_swap('old_t', 't');
DROP VIEW seen, image;
DROP TABLE child, t, groups, was, is_now, old_t;
DROP FUNCTION fire;

-- partitions: one of them can be swapped, in its bounds; keys that refer to the whole are checked as a whole
CREATE TABLE parted (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (10);
CREATE TABLE parted_2 (v text, id int NOT NULL);
ALTER TABLE parted ATTACH PARTITION parted_2 FOR VALUES FROM (10) TO (20);
INSERT INTO parted SELECT i, 'v' || i FROM generate_series(0, 19) i;
CREATE TABLE child (p int REFERENCES parted) PARTITION BY LIST (p);
CREATE TABLE child_1 PARTITION OF child DEFAULT;
INSERT INTO child VALUES (3), (13);
SELECT clock_timestamp() AS t \gset
DELETE FROM parted WHERE id IN (5, 15);
INSERT INTO child VALUES (4);
SELECT result FROM polar_flashback_table('parted', :'t', 'old_parted') \gset
SELECT result FROM polar_flashback_table('parted_2', :'t', 'old_parted_2') \gset
SELECT result FROM polar_flashback_table('child_1', :'t', 'old_child') \gset
SELECT * FROM polar_flashback_swap('old_parted', 'parted');
SELECT * FROM polar_flashback_swap('old_parted_2', 'parted_2');
SELECT count(*), min(id), max(id) FROM parted;
INSERT INTO old_parted_2 VALUES ('out of bounds', 25);
SELECT * FROM polar_flashback_swap('old_parted_2', 'parted_2');
DELETE FROM old_parted_2 WHERE id IN (13, 25);
SELECT * FROM polar_flashback_swap('old_parted_2', 'parted_2');
SELECT * FROM polar_flashback_swap('old_child', 'child_1');
SELECT * FROM child ORDER BY p;
INSERT INTO old_child VALUES (99);
SELECT * FROM polar_flashback_swap('old_child', 'child_1');
DROP TABLE child, parted, old_parted, old_parted_2, old_child;

-- an owner who may not read the table that refers: row by row
CREATE SCHEMA swapped AUTHORIZATION regress_swap_owner;
SET ROLE regress_swap_owner;
CREATE TABLE swapped.t (id int PRIMARY KEY);
GRANT REFERENCES ON swapped.t TO regress_swap_reader;
GRANT USAGE ON SCHEMA swapped TO regress_swap_reader;
INSERT INTO swapped.t VALUES (1), (2);
RESET ROLE;
SELECT clock_timestamp() AS t \gset
INSERT INTO swapped.t VALUES (3);
CREATE TABLE of_reader (id int, t int REFERENCES swapped.t);
ALTER TABLE of_reader OWNER TO regress_swap_reader;
INSERT INTO of_reader VALUES (1, 1), (2, NULL);
SELECT result FROM polar_flashback_table('swapped.t', :'t', 'old_t') \gset
SELECT * FROM polar_flashback_swap(:'result', 'swapped.t');
SELECT * FROM polar_flashback_swap(:'result', 'swapped.t');
INSERT INTO of_reader VALUES (3, 3);
SELECT * FROM polar_flashback_swap(:'result', 'swapped.t');
DROP TABLE of_reader;
DROP OWNED BY regress_swap_owner, regress_swap_reader;
DROP ROLE regress_swap_owner, regress_swap_reader;
