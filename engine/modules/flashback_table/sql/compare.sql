-- the rows of then beside those of now
SET client_min_messages = warning;
CREATE TABLE t (id int PRIMARY KEY, a text, n numeric);
INSERT INTO t SELECT i, 'a' || i, i FROM generate_series(1, 1000) i;
SELECT clock_timestamp() AS t \gset
DELETE FROM t WHERE id <= 2;
UPDATE t SET a = 'b' WHERE id BETWEEN 3 AND 5;
UPDATE t SET a = 'c' WHERE id = 7;
UPDATE t SET a = 'a7' WHERE id = 7;
INSERT INTO t VALUES (1001, repeat('ä', 200), 1), (1002, repeat('ä', 201), NULL);
-- not a number that equals, but what is stored
UPDATE t SET n = 6.0 WHERE id = 6;
SELECT * FROM polar_flashback_compare('t', :'t') WHERE rows IS NOT NULL OR kind = 'columns';
SELECT * FROM polar_flashback_compare('t', :'t') WHERE rows IS NULL AND kind <> 'columns' ORDER BY kind, key;
SELECT kind, count(*) FROM polar_flashback_compare('t', :'t', samples => 2) GROUP BY kind ORDER BY kind;
SELECT count(*) FROM polar_flashback_compare('t', :'t', samples => 0);
SELECT result FROM polar_flashback_table('t', :'t', 'old_t') \gset
SELECT * FROM polar_flashback_compare('t', result => :'result', samples => 0);

-- what cannot be asked
SELECT * FROM polar_flashback_compare('t');
SELECT * FROM polar_flashback_compare(NULL, :'t');
SELECT * FROM polar_flashback_compare('t', :'t', :'result');
SELECT * FROM polar_flashback_compare('t', :'t', samples => -1);
SELECT * FROM polar_flashback_compare('t', :'t', samples => 10001);
SELECT * FROM polar_flashback_compare('pg_class', :'t');
SELECT * FROM polar_flashback_compare(0, :'t');
SELECT * FROM polar_flashback_compare('t', result => 't');
SELECT * FROM polar_flashback_compare(:'result', result => 't');
CREATE VIEW v AS SELECT 1;
SELECT * FROM polar_flashback_compare('v', :'t');
DROP VIEW v;

-- columns: those that have been added since do not count, of a result those that are missing do
ALTER TABLE t ADD COLUMN later int DEFAULT 5, ADD COLUMN twice int GENERATED ALWAYS AS (id * 2) VIRTUAL;
SELECT * FROM polar_flashback_compare('t', :'t', samples => 1);
SELECT * FROM polar_flashback_compare('t', result => :'result', samples => 1);
ALTER TABLE t DROP COLUMN n;
SELECT rows FROM polar_flashback_compare('t', :'t') WHERE kind = 'changed';
SELECT rows FROM polar_flashback_compare('t', result => :'result') WHERE kind = 'changed';
ALTER TABLE t RENAME COLUMN a TO "b""";
SELECT rows FROM polar_flashback_compare('t', :'t') WHERE kind = 'changed';
SELECT rows FROM polar_flashback_compare('t', result => :'result') WHERE kind = 'changed';
ALTER TABLE :result RENAME COLUMN a TO "b""";
SELECT rows FROM polar_flashback_compare('t', result => :'result') WHERE kind = 'changed';
ALTER TABLE :result ALTER COLUMN "b""" TYPE varchar(300);
SELECT rows FROM polar_flashback_compare('t', result => :'result') WHERE kind = 'changed';
DROP TABLE t, :result;

-- without a key rows are counted as often as they occur
CREATE TABLE bag (a int, b text);
INSERT INTO bag VALUES (1, 'x'), (1, 'x'), (1, 'x'), (2, NULL), (2, NULL), (3, ''), (NULL, NULL);
SELECT clock_timestamp() AS t \gset
DELETE FROM bag WHERE ctid IN ('(0,1)', '(0,4)', '(0,5)');
INSERT INTO bag VALUES (3, ''), (3, NULL);
SELECT * FROM polar_flashback_compare('bag', :'t');
-- nor with an index that is none
CREATE UNIQUE INDEX ON bag (a, b) WHERE a > 3;
CREATE UNIQUE INDEX ON bag (b, a) WHERE false;
CREATE UNIQUE INDEX ON bag ((a + 100)) WHERE a IS NULL;
SELECT key, row_now FROM polar_flashback_compare('bag', :'t') WHERE kind = 'columns';
DROP TABLE bag;

-- a key that rows did not have then
CREATE TABLE keyless (id int, v text);
INSERT INTO keyless VALUES (1, 'a'), (1, 'b'), (2, 'c');
SELECT clock_timestamp() AS t \gset
DELETE FROM keyless WHERE v = 'b';
UPDATE keyless SET v = 'd' WHERE id = 2;
ALTER TABLE keyless ADD PRIMARY KEY (id);
SELECT * FROM polar_flashback_compare('keyless', :'t') WHERE rows IS NOT NULL OR kind = 'columns';
SELECT * FROM polar_flashback_compare('keyless', :'t') WHERE rows IS NULL AND kind <> 'columns' ORDER BY kind, row_then;
DROP TABLE keyless;
CREATE TABLE keyless (id int, v text);
INSERT INTO keyless VALUES (NULL, 'a'), (2, 'c');
SELECT clock_timestamp() AS t \gset
DELETE FROM keyless WHERE id IS NULL;
ALTER TABLE keyless ADD PRIMARY KEY (id);
SELECT * FROM polar_flashback_compare('keyless', :'t');
DROP TABLE keyless;

-- all types: by value and by reference, large ones, composite, arrays, domains, ranges; a unique index as key
CREATE TYPE pair AS (x int, y text);
CREATE DOMAIN short AS text CHECK (length(value) < 5);
CREATE TABLE types (k1 uuid NOT NULL, k2 "char" NOT NULL, b bool, i2 int2, i8 int8, f float8, tz timestamptz, n name,
  big text, p pair, l int[], d short, r int4range, j jsonb, bits varbit, iv interval, big2 bytea, UNIQUE (k2, k1));
INSERT INTO types SELECT md5(i::text)::uuid, 'k', i % 2 = 0, i, i * 10000000000, i / 3.0, '2026-01-01'::timestamptz + i * interval '1 h', 'n' || i,
  CASE WHEN i % 10 = 0 THEN (SELECT string_agg(md5(g::text), '') FROM generate_series(1, 500) g) ELSE 'small' END,
  (i, 'y')::pair, ARRAY[i, NULL, 3], 'd', int4range(i, i + 5), jsonb_build_object('i', i), i::bit(8)::varbit, i * interval '1 day', decode(md5(i::text), 'hex')
  FROM generate_series(1, 100) i;
ALTER TABLE types ALTER big SET STORAGE EXTERNAL;
INSERT INTO types (k1, k2, big) SELECT md5(i::text)::uuid, 'l', (SELECT string_agg(md5(g::text), '') FROM generate_series(1, 500) g) FROM generate_series(1, 3) i;
SELECT clock_timestamp() AS t \gset
UPDATE types SET i2 = i2;
VACUUM types;
SELECT kind, rows, key FROM polar_flashback_compare('types', :'t') WHERE kind IN ('columns', 'same', 'changed');
UPDATE types SET big = big || '.' WHERE k2 = 'l';
UPDATE types SET p = (0, 'y') WHERE (p).x = 1;
UPDATE types SET l[3] = 4 WHERE i2 = 2;
UPDATE types SET j = j - 'i' WHERE i2 = 3;
SELECT kind, rows FROM polar_flashback_compare('types', :'t') WHERE kind IN ('same', 'changed') AND rows IS NOT NULL;
SELECT row_then FROM polar_flashback_compare('types', :'t') WHERE row_then[4] = '3';
DROP TABLE types;
DROP TYPE pair;

-- more than memory takes
SET maintenance_work_mem = '64kB';
CREATE TABLE large (id int PRIMARY KEY, v text);
INSERT INTO large SELECT i, repeat('v', 100) FROM generate_series(1, 20000) i;
SELECT clock_timestamp() AS t \gset
UPDATE large SET v = 'w' WHERE id % 7 = 0;
DELETE FROM large WHERE id % 11 = 0;
INSERT INTO large SELECT i, '' FROM generate_series(20001, 20123) i;
SELECT kind, rows FROM polar_flashback_compare('large', :'t', samples => 0);
SELECT (SELECT count(*) FROM generate_series(1, 20000) i WHERE i % 7 = 0 AND i % 11 <> 0) AS changed, 20000 / 11 AS removed;
DROP TABLE large;
RESET maintenance_work_mem;

-- partitions, with columns in another order; one has been attached since
CREATE TABLE parted (id int, v text, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (100);
CREATE TABLE parted_2 (v text, gone int, id int NOT NULL);
ALTER TABLE parted_2 DROP COLUMN gone;
ALTER TABLE parted ATTACH PARTITION parted_2 FOR VALUES FROM (100) TO (200);
INSERT INTO parted SELECT i, 'v' || i FROM generate_series(0, 199) i;
SELECT clock_timestamp() AS t \gset
CREATE TABLE parted_3 PARTITION OF parted FOR VALUES FROM (200) TO (300);
UPDATE parted SET id = 250 WHERE id = 50;
UPDATE parted SET v = 'w' WHERE id IN (51, 151);
SELECT * FROM polar_flashback_compare('parted', :'t') WHERE rows IS NOT NULL OR kind = 'columns';
SELECT * FROM polar_flashback_compare('parted', :'t') WHERE rows IS NULL AND kind <> 'columns' ORDER BY kind, key;
SELECT kind, rows FROM polar_flashback_compare('parted_2', :'t', samples => 0);
DROP TABLE parted;
