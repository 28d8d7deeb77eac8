-- the rows of a table as CSV
SET client_min_messages = warning;
CREATE TABLE t (id int, gone int, "quo""ted, name" text, n numeric, empty text, day date, twice int GENERATED ALWAYS AS (id * 2) VIRTUAL);
ALTER TABLE t DROP COLUMN gone;
INSERT INTO t VALUES (1, 'plain', 1.50, '', '2026-01-01'), (2, 'a,b', NULL, NULL, 'infinity'), (3, 'say "hi"', 0, ' ', NULL),
  (4, E'two\nlines', 0, E'\r', NULL), (5, 'ümläut', 0, '\.', NULL), (6, '"', 0, '""', NULL);
SELECT polar_flashback_csv('t');
SELECT polar_flashback_csv('t', 'id > 4 AND twice < 12');
SELECT polar_flashback_csv('t', 'false');
-- as COPY writes it, with dates as in ISO 8601
SET datestyle = ISO;
\getenv abs_builddir PG_ABS_BUILDDIR
\set file :abs_builddir '/results/copied.csv'
COPY (SELECT * FROM t) TO STDOUT (FORMAT csv, HEADER) \g :file
\set copied `cat :file`
SELECT :'copied' || E'\n' = (SELECT string_agg(c, '') FROM polar_flashback_csv('t') c) AS same;
CREATE TABLE one (v text);
INSERT INTO one VALUES ('\.'), (NULL), (''), ('x');
COPY (SELECT * FROM one) TO STDOUT (FORMAT csv, HEADER) \g :file
\set copied `cat :file`
SELECT :'copied' || E'\n' = (SELECT string_agg(c, '') FROM polar_flashback_csv('one') c) AS same;
DROP TABLE one, t;

-- in pieces, each made when it is asked for
CREATE TABLE large (id int, v text);
INSERT INTO large SELECT i, repeat('v', 1000) FROM generate_series(1, 1000) i;
INSERT INTO large VALUES (1001, repeat('w', 1000000));
SELECT count(*) > 10 AS pieces, min(length(c)) FILTER (WHERE n < 15) >= 65536 AS full, sum(length(c)), sum(regexp_count(c, E'\n')) AS lines
  FROM (SELECT c, row_number() OVER () AS n FROM polar_flashback_csv('large') c) p;
SELECT length(polar_flashback_csv('large')) > 65536 AS first LIMIT 1;
SELECT count(*) FROM (SELECT polar_flashback_csv('large') LIMIT 3) c;
BEGIN;
DECLARE c CURSOR FOR SELECT length(polar_flashback_csv('large', 'id < 500')) > 65536 AS full;
FETCH 2 FROM c;
DELETE FROM large WHERE id > 100;
FETCH 2 FROM c;
CLOSE c;
ROLLBACK;
BEGIN;
DECLARE c CURSOR FOR SELECT polar_flashback_csv('large', '1 / (id - 300) < 2');
SELECT 1;
SAVEPOINT s;
MOVE ALL FROM c;
ROLLBACK TO s;
SELECT current_user = session_user AS same_user;
COMMIT;
DROP TABLE large;

-- partitions, a materialized view, a result, and what has no rows of its own
CREATE TABLE parted (id int, v text) PARTITION BY LIST (id);
CREATE TABLE parted_1 (v text, id int);
ALTER TABLE parted ATTACH PARTITION parted_1 DEFAULT;
INSERT INTO parted VALUES (1, 'a'), (2, 'b');
SELECT polar_flashback_csv('parted', 'id = 2');
CREATE MATERIALIZED VIEW m AS SELECT * FROM parted;
SELECT polar_flashback_csv('m');
SELECT clock_timestamp() AS t \gset
DELETE FROM parted;
SELECT result FROM polar_flashback_table('parted', :'t') \gset
SELECT polar_flashback_csv(:'result');
DROP MATERIALIZED VIEW m;
DROP TABLE parted, :result;
CREATE TABLE nothing ();
SELECT polar_flashback_csv('nothing');
DROP TABLE nothing;
CREATE VIEW v AS SELECT 1 AS id;
SELECT polar_flashback_csv('v');
SELECT polar_flashback_csv(NULL);
DROP VIEW v;
CREATE TABLE t (id int);
CREATE ROLE regress_csv;
GRANT SELECT ON t TO regress_csv;
SET ROLE regress_csv;
SELECT polar_flashback_csv('t');
RESET ROLE;
DROP TABLE t;
DROP ROLE regress_csv;
