-- keys, indexes and not-null constraints of tables that were dropped
SET client_min_messages = warning;
CREATE SCHEMA keys;
SET search_path = keys, public;
CREATE VIEW index_definitions AS
  SELECT tablename, indexname, regexp_replace(indexdef, ' ON .* USING', ' USING') AS definition
  FROM pg_indexes WHERE schemaname = 'keys' ORDER BY tablename, indexname;
CREATE VIEW constraint_definitions AS
  SELECT conrelid::regclass AS relation, conname, pg_get_constraintdef(oid) AS definition, convalidated
  FROM pg_constraint WHERE connamespace = 'keys'::regnamespace AND conrelid <> 0 ORDER BY conrelid::regclass::text, conname;

CREATE ROLE regress_flashback_keys;
GRANT ALL ON SCHEMA keys TO regress_flashback_keys;
GRANT SELECT ON index_definitions, constraint_definitions TO regress_flashback_keys;
SET ROLE regress_flashback_keys;
CREATE COLLATION keys.german (provider = builtin, locale = 'C.UTF-8');
CREATE TABLE parent (id int PRIMARY KEY);
CREATE TABLE orders (
  gone int,
  id bigint CONSTRAINT "orders KEY" PRIMARY KEY,
  code text COLLATE keys.german NOT NULL,
  number int CONSTRAINT has_number NOT NULL UNIQUE DEFERRABLE INITIALLY DEFERRED,
  a int, b int, c jsonb, during int4range,
  parent int REFERENCES parent,
  twice int GENERATED ALWAYS AS (a * 2) VIRTUAL NOT NULL,
  CHECK (a > 0),
  EXCLUDE USING gist (during WITH &&));
ALTER TABLE orders DROP COLUMN gone;
CREATE UNIQUE INDEX orders_ab ON orders (a DESC NULLS LAST, b NULLS FIRST) INCLUDE (code) NULLS NOT DISTINCT WITH (fillfactor = 70);
CREATE INDEX orders_code ON orders (code COLLATE "C" text_pattern_ops);
CREATE INDEX orders_json ON orders USING gin (c jsonb_path_ops);
CREATE INDEX orders_brin ON orders USING brin (id) WITH (pages_per_range = 4);
CREATE INDEX orders_lower ON orders (lower(code));
CREATE INDEX orders_partial ON orders (b) WHERE a > 5;
ALTER TABLE orders ADD CONSTRAINT unproven NOT NULL b NOT VALID;
INSERT INTO parent VALUES (1);
INSERT INTO orders (id, code, number, a, b, c, during, parent)
  SELECT g, 'code ' || g, g, g, g, jsonb_build_object('g', g), int4range(g, g + 1), 1 FROM generate_series(1, 1000) g;
TABLE index_definitions;
TABLE constraint_definitions;
DROP TABLE orders;
SET client_min_messages = notice;
\set VERBOSITY sqlstate
FLASHBACK TABLE orders TO BEFORE DROP RENAME TO again;
\set VERBOSITY default
SELECT relation, lsn FROM polar_flashback_dropped() WHERE relation_name = 'orders' \gset
DROP TABLE again;
SELECT rows FROM polar_flashback_before_drop(:relation, :'lsn', 'orders');
TABLE index_definitions;
TABLE constraint_definitions;
SELECT attname, attnotnull FROM pg_attribute WHERE attrelid = 'orders'::regclass AND attnum > 0 ORDER BY attnum;
SET client_min_messages = warning;

-- they hold, and are used
INSERT INTO orders (id, code, number, a, b) VALUES (1, 'x', 5000, 5000, 5000);
INSERT INTO orders (id, code, number, a, b) VALUES (5000, NULL, 5000, 5000, 5000);
INSERT INTO orders (id, code, number, a, b) VALUES (5000, 'x', 5000, 7, 7);
BEGIN;
UPDATE orders SET number = 1 WHERE id = 2;
UPDATE orders SET number = 2 WHERE id = 1;
COMMIT;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE id = 5;
SELECT number FROM orders WHERE id = 5;
RESET enable_seqscan;

-- the name of one is taken; what it used is not that of then
DROP TABLE orders;
CREATE TABLE orders_ab (a int);
CREATE TABLE other (a int CONSTRAINT "orders KEY" CHECK (a > 0));
DROP COLLATION keys.german;
CREATE COLLATION keys.german (provider = builtin, locale = 'C');
SET client_min_messages = notice;
SELECT rows FROM polar_flashback_before_drop(:relation, :'lsn', 'orders');
SELECT indexname FROM index_definitions WHERE tablename = 'orders';
SET client_min_messages = warning;
DROP TABLE orders, orders_ab, other;

-- those of a partitioned table, and of one partition
CREATE TABLE parts (id int, day int, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (1) TO (10);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (10) TO (20);
CREATE INDEX ON parts (day);
INSERT INTO parts SELECT g, 1 + g % 19 FROM generate_series(1, 100) g;
DROP TABLE parts_1;
FLASHBACK TABLE parts_1 TO BEFORE DROP;
SELECT definition FROM index_definitions WHERE tablename = 'parts_1';
DROP TABLE parts;
FLASHBACK TABLE parts TO BEFORE DROP;
SELECT definition FROM index_definitions WHERE tablename = 'parts';
SELECT definition FROM constraint_definitions WHERE relation = 'parts'::regclass;

-- a change of them in the transaction that drops it does not count, and one before it does
CREATE TABLE late (a int);
INSERT INTO late VALUES (1), (2);
CREATE INDEX late_first ON late (a);
ALTER TABLE late ADD UNIQUE (a);
BEGIN;
DROP INDEX late_first;
ALTER TABLE late ALTER a SET NOT NULL;
DROP TABLE late;
COMMIT;
FLASHBACK TABLE late TO BEFORE DROP;
SELECT indexname, definition FROM index_definitions WHERE tablename = 'late';
SELECT attnotnull FROM pg_attribute WHERE attrelid = 'late'::regclass AND attname = 'a';

-- the catalogs that say so were rewritten since
RESET ROLE;
DROP TABLE late;
VACUUM FULL pg_index;
VACUUM FULL pg_constraint;
SET ROLE regress_flashback_keys;
FLASHBACK TABLE late TO BEFORE DROP;
SELECT indexname, definition FROM index_definitions WHERE tablename = 'late';

-- only some of the rows
DROP TABLE late;
SELECT relation, lsn FROM polar_flashback_dropped() WHERE relation_name = 'late' LIMIT 1 \gset
SELECT rows FROM polar_flashback_before_drop(:relation, :'lsn', condition => 'a = 1');
SELECT indexname FROM index_definitions WHERE tablename = 'late';

RESET ROLE;
SET client_min_messages = warning;
DROP SCHEMA keys CASCADE;
DROP OWNED BY regress_flashback_keys;
DROP ROLE regress_flashback_keys;
