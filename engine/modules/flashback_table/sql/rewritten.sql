-- tables whose files are not those of then
SET client_min_messages = warning;
CREATE TABLE r (id int PRIMARY KEY, gone text, n int, body text);
ALTER TABLE r ALTER body SET STORAGE EXTERNAL;
INSERT INTO r SELECT g, 'gone', g % 7, CASE WHEN g % 10 = 0 THEN repeat(md5(g::text), 100) END FROM generate_series(1, 500) g;
ALTER TABLE r DROP COLUMN gone;
ALTER TABLE r ADD early text DEFAULT 'early';
SELECT clock_timestamp() AS t \gset
SELECT count(*), sum(hashtext(r::text)) AS content FROM r \gset then_

-- TRUNCATE
DELETE FROM r WHERE id < 100;
TRUNCATE r;
INSERT INTO r (id) VALUES (1);
SELECT count(*) = :then_count AS count, sum(hashtext(r::text)) = :then_content AS content FROM polar_flashback_rows(NULL::r, :'t') r;
SELECT polar_flashback_count('r', :'t'), polar_flashback_count('r', :'t', 'id <= 10');
SELECT rows FROM polar_flashback_table('r', :'t', 'r_then', with_indexes => true);
SELECT count(*) = :then_count AS count, sum(hashtext(r::text)) = :then_content AS content FROM r_then r;
SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 'r_then'::regclass;
DROP TABLE r_then;
SELECT 'polar_flashback_' || 'r'::regclass::oid AS result \gset
FLASHBACK TABLE r TO TIMESTAMP :'t';
SELECT count(*) = :then_count AS count, sum(hashtext(r::text)) = :then_content AS content FROM :result r;
DROP TABLE :result;
SELECT possible, reason, pages > 5 AS pages FROM polar_flashback_check('r', :'t');

-- one after the other, each moment with the file that it had
SELECT clock_timestamp() AS t1 \gset
INSERT INTO r SELECT g, g, repeat(md5(g::text), 100) FROM generate_series(2, 30) g;
SELECT clock_timestamp() AS t2 \gset
VACUUM FULL r;
SELECT clock_timestamp() AS t3 \gset
DELETE FROM r WHERE id > 20;
CLUSTER r USING r_pkey;
SELECT clock_timestamp() AS t4 \gset
CHECKPOINT;
UPDATE r SET body = body || 'x';
SELECT clock_timestamp() AS t5 \gset
TRUNCATE r;
SELECT clock_timestamp() AS t6 \gset
BEGIN;
INSERT INTO r (id) VALUES (1000);
TRUNCATE r;
INSERT INTO r (id) VALUES (1001);
TRUNCATE r;
INSERT INTO r (id) VALUES (1002);
COMMIT;
SELECT clock_timestamp() AS t7 \gset
TRUNCATE r;
SELECT count(*), sum(id), sum(length(body)), min(early) FROM polar_flashback_rows(NULL::r, :'t1');
SELECT count(*), sum(id), sum(length(body)), min(early) FROM polar_flashback_rows(NULL::r, :'t2');
SELECT count(*), sum(id), sum(length(body)), min(early) FROM polar_flashback_rows(NULL::r, :'t3');
SELECT count(*), sum(id), sum(length(body)), min(early) FROM polar_flashback_rows(NULL::r, :'t4');
SELECT count(*), sum(id), sum(length(body)), min(early) FROM polar_flashback_rows(NULL::r, :'t5');
SELECT count(*), sum(id), sum(length(body)), min(early) FROM polar_flashback_rows(NULL::r, :'t6');
SELECT count(*), sum(id), sum(length(body)), min(early) FROM polar_flashback_rows(NULL::r, :'t7');
SELECT count(*) = :then_count AS count, sum(hashtext(r::text)) = :then_content AS content FROM polar_flashback_rows(NULL::r, :'t') r;

-- columns of now: dropped ones and those added since are null
ALTER TABLE r DROP COLUMN n;
ALTER TABLE r ADD late int DEFAULT 7;
VACUUM FULL r;
SELECT * FROM polar_flashback_rows(NULL::r, :'t', 'id IN (1, 2)') ORDER BY id;
SELECT count(*), sum(late), min(early) FROM polar_flashback_rows(NULL::r, :'t');

-- other types: a table has the columns of then
CREATE TABLE typed (id int, v text, d numeric(6, 2), w varchar(5), dropped int DEFAULT 5, g int GENERATED ALWAYS AS (id * 2) STORED);
INSERT INTO typed SELECT g, g, g / 8.0, 'w' || g, g FROM generate_series(1, 20) g;
ALTER TABLE typed ADD missing int DEFAULT 3;
SELECT clock_timestamp() AS t \gset
ALTER TABLE typed DROP COLUMN dropped;
ALTER TABLE typed ALTER w TYPE varchar(10);
VACUUM FULL typed;
SELECT count(*), min(w), sum(missing), sum(d), sum(g) FROM polar_flashback_rows(NULL::typed, :'t');
ALTER TABLE typed ALTER v TYPE int USING v::int * 100;
SET client_min_messages = notice;
SELECT polar_flashback_count('typed', :'t');
SELECT polar_flashback_count('typed', :'t', 'id = 1');
SELECT * FROM polar_flashback_rows(NULL::typed, :'t');
SELECT polar_flashback_table('typed', :'t', 'typed_then', with_indexes => true);
SELECT rows FROM polar_flashback_table('typed', :'t', 'typed_then', condition => 'id <= 3');
\d typed_then
SELECT * FROM typed_then ORDER BY id;
DROP TABLE typed_then;
SELECT possible FROM polar_flashback_check('typed', :'t');
ALTER TABLE typed ALTER v TYPE text;
SELECT count(*), min(v), max(v) FROM polar_flashback_rows(NULL::typed, :'t');
ALTER TABLE typed ALTER d TYPE numeric(6, 1);
SELECT polar_flashback_count('typed', :'t', 'id = 1');
SET client_min_messages = warning;

-- types that are gone, or are not what they were
CREATE TYPE r_mood AS ENUM ('sad', 'happy');
CREATE TYPE r_pair AS (a int, b text);
CREATE DOMAIN r_positive AS int CHECK (VALUE > 0);
CREATE TABLE odd (id int, m r_mood, p r_pair[], d r_positive);
INSERT INTO odd VALUES (1, 'sad', ARRAY[ROW(1, 'x')::r_pair], 3);
SELECT clock_timestamp() AS t \gset
ALTER TABLE odd ADD late int;
VACUUM FULL odd;
ALTER TYPE r_mood ADD VALUE 'calm';
SELECT * FROM polar_flashback_rows(NULL::odd, :'t');
ALTER TABLE odd ALTER m TYPE text;
SELECT rows FROM polar_flashback_table('odd', :'t', 'odd_then');
SELECT * FROM odd_then;
DROP TABLE odd_then;
DROP TYPE r_mood;
SELECT * FROM polar_flashback_table('odd', :'t', 'odd_then');
SELECT reason FROM polar_flashback_check('odd', :'t');
CREATE TYPE r_mood AS ENUM ('sad', 'happy');
SELECT clock_timestamp() AS t \gset
TRUNCATE odd;
ALTER TABLE odd ALTER p TYPE text USING NULL;
ALTER TYPE r_pair ALTER ATTRIBUTE a TYPE text;
ALTER TABLE odd ALTER p TYPE r_pair[] USING NULL;
SELECT * FROM polar_flashback_rows(NULL::odd, :'t');
ALTER TABLE odd DROP COLUMN p;
VACUUM FULL odd;
SELECT * FROM polar_flashback_rows(NULL::odd, :'t');
DROP TABLE odd;

-- materialized views, partitions
CREATE MATERIALIZED VIEW seen AS SELECT g, repeat('m', g) AS m FROM generate_series(1, 100) g;
SELECT clock_timestamp() AS t \gset
REFRESH MATERIALIZED VIEW seen WITH NO DATA;
SELECT polar_flashback_count('seen', :'t');
DROP MATERIALIZED VIEW seen;
CREATE TABLE parts (k int, v text) PARTITION BY LIST (k);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE parts_2 (v text, gone int, k int);
ALTER TABLE parts_2 DROP COLUMN gone;
ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES IN (2);
INSERT INTO parts SELECT 1 + g % 2, g FROM generate_series(1, 100) g;
SELECT clock_timestamp() AS t \gset
TRUNCATE parts;
ALTER TABLE parts RENAME v TO w;
SELECT k, count(*), sum(w::int) FROM polar_flashback_rows(NULL::parts, :'t') GROUP BY k ORDER BY k;
ALTER TABLE parts_2 RENAME TO renamed;
SET client_min_messages = notice;
DROP TABLE parts_1;
SELECT k, count(*), sum(w::int) FROM polar_flashback_rows(NULL::parts, :'t') GROUP BY k ORDER BY k;
ALTER TABLE parts DETACH PARTITION renamed;
ALTER TABLE renamed ALTER w TYPE int USING 0;
SELECT k, count(*), sum(w::int) FROM polar_flashback_rows(NULL::parts, :'t') GROUP BY k ORDER BY k;
ALTER TABLE parts ALTER w TYPE int USING 0;
SELECT rows FROM polar_flashback_table('parts', :'t', 'parts_then', condition => 'v < ''2''');
\d parts_then
SELECT k, count(*), sum(v::int) FROM parts_then GROUP BY k ORDER BY k;
SET client_min_messages = warning;
DROP TABLE parts, parts_then, renamed;

-- policies know what was rewritten, too
CREATE TABLE secret (id int, who text, n int);
INSERT INTO secret VALUES (1, 'regress_flashback_role', 1), (2, 'other', 2);
CREATE ROLE regress_flashback_role;
ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON secret USING (who = current_user);
GRANT SELECT ON secret TO regress_flashback_role;
GRANT EXECUTE ON FUNCTION polar_flashback_visible_rows TO regress_flashback_role;
SELECT clock_timestamp() AS t \gset
TRUNCATE secret;
SET ROLE regress_flashback_role;
SELECT * FROM polar_flashback_visible_rows(NULL::secret, :'t');
SELECT * FROM polar_flashback_rows(NULL::secret, :'t');
RESET ROLE;
ALTER TABLE secret ALTER n TYPE text;
SET ROLE regress_flashback_role;
SELECT * FROM polar_flashback_visible_rows(NULL::secret, :'t');
RESET ROLE;
DROP OWNED BY regress_flashback_role;
DROP ROLE regress_flashback_role;
DROP TABLE secret;

-- what is not kept: in the transaction that rewrites it
CREATE TABLE under (id int);
INSERT INTO under VALUES (1);
SELECT clock_timestamp() AS t \gset
BEGIN;
TRUNCATE under;
SELECT possible, reason FROM polar_flashback_check('under', :'t');
SELECT polar_flashback_count('under', :'t');
ROLLBACK;
SELECT polar_flashback_count('under', :'t');
TRUNCATE under;

SELECT tablespace AS spc, database AS db, relfilenode FROM polar_flashback_recycled ORDER BY commit_lsn DESC LIMIT 1 \gset
SELECT polar_flashback_purge(:spc, :db, :relfilenode);
-- the hint has a time
\set VERBOSITY terse
SELECT polar_flashback_count('under', :'t');
\set VERBOSITY default
SELECT possible, reason, nearest_time > :'t' AS later FROM polar_flashback_check('under', :'t');
SELECT nearest_time AS t FROM polar_flashback_check('under', :'t') \gset
SELECT polar_flashback_count('under', :'t');
DROP TABLE under, r, typed;
DROP TYPE r_mood, r_pair;
DROP DOMAIN r_positive;
