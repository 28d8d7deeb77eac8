-- tables that were dropped
SET client_min_messages = warning;
CREATE SCHEMA lost;
CREATE SCHEMA other;
CREATE ROLE regress_flashback_owner;
CREATE ROLE regress_flashback_stranger;
CREATE ROLE regress_flashback_watcher;
GRANT pg_monitor TO regress_flashback_watcher;
GRANT ALL ON SCHEMA lost, other TO regress_flashback_owner, regress_flashback_stranger;
CREATE VIEW lost_tables AS
  SELECT schema_name, relation_name, owner, kind, size_bytes > 0 AS has_size, restorable_since < at AS restorable, definition
  FROM polar_flashback_dropped() WHERE schema_name LIKE '%lost' OR schema_name = 'other' ORDER BY lsn DESC, relation_name;
GRANT SELECT ON lost_tables TO PUBLIC;

-- the command gives name, schema and owner back
SET ROLE regress_flashback_owner;
CREATE TABLE lost.orders (id int PRIMARY KEY DEFAULT 3, "odd name" text COLLATE "C" DEFAULT 'x', gone int, price numeric(8, 2) NOT NULL,
  twice numeric GENERATED ALWAYS AS (price * 2) STORED, thrice numeric GENERATED ALWAYS AS (price * 3) VIRTUAL);
ALTER TABLE lost.orders DROP COLUMN gone;
ALTER TABLE lost.orders ALTER "odd name" SET STORAGE EXTERNAL;
INSERT INTO lost.orders (id, "odd name", price) SELECT g, repeat(md5(g::text), CASE WHEN g % 10 = 0 THEN 100 ELSE 1 END), g FROM generate_series(1, 100) g;
ALTER TABLE lost.orders ADD late int DEFAULT 9;
GRANT ALL ON lost.orders TO PUBLIC;
UPDATE lost.orders SET price = price + 1 WHERE id <= 5;
DROP TABLE lost.orders;
SELECT * FROM lost_tables;
FLASHBACK TABLE orders TO BEFORE DROP;
SET client_min_messages = notice;
SET TimeZone = 'UTC';
\set VERBOSITY sqlstate
FLASHBACK TABLE lost.orders TO BEFORE DROP;
\set VERBOSITY default
SELECT count(*), sum(id), sum(length("odd name")), sum(price), sum(twice), sum(thrice), sum(late) FROM lost.orders;
\d lost.orders
SELECT relowner::regrole, relacl FROM pg_class WHERE oid = 'lost.orders'::regclass;
SET client_min_messages = warning;

-- its name is taken now
FLASHBACK TABLE lost.orders TO BEFORE DROP;
FLASHBACK TABLE lost.orders TO BEFORE DROP RENAME TO orders_again;
SELECT count(*) FROM lost.orders_again;
DROP TABLE lost.orders_again;

-- several of one name: the newest
DELETE FROM lost.orders WHERE id > 10;
DROP TABLE lost.orders;
CREATE TABLE lost.orders (a text);
INSERT INTO lost.orders VALUES ('newest');
DROP TABLE lost.orders;
SET search_path = lost, public;
FLASHBACK TABLE orders TO BEFORE DROP;
TABLE lost.orders;
SELECT relation AS older, lsn AS older_lsn FROM polar_flashback_dropped() WHERE relation_name = 'orders' AND kind = 'dropped' OFFSET 1 LIMIT 1 \gset
SELECT result, rows FROM polar_flashback_before_drop(:older, :'older_lsn', 'orders_older', 'other');
SELECT count(*), sum(id) FROM other.orders_older;
DROP TABLE other.orders_older;
SELECT rows FROM polar_flashback_before_drop(:older, :'older_lsn', 'orders_older', condition => 'id = 3 AND price = 4');
TABLE lost.orders_older;
DROP TABLE lost.orders_older;
SELECT polar_flashback_before_drop(:older, :'older_lsn', 'orders_older', condition => 'nonsense');
RESET search_path;

-- one commit does more than one thing
BEGIN;
UPDATE lost.orders SET a = 'never';
TRUNCATE lost.orders;
INSERT INTO lost.orders VALUES ('never');
DROP TABLE lost.orders;
COMMIT;
FLASHBACK TABLE lost.orders TO BEFORE DROP;
TABLE lost.orders;
BEGIN;
CREATE TABLE lost.never (a int);
INSERT INTO lost.never VALUES (1);
DROP TABLE lost.never;
COMMIT;
FLASHBACK TABLE lost.never TO BEFORE DROP;
BEGIN;
ALTER TABLE lost.orders RENAME TO renamed;
SAVEPOINT s;
DROP TABLE lost.renamed;
RELEASE s;
COMMIT;
FLASHBACK TABLE lost.renamed TO BEFORE DROP;
FLASHBACK TABLE lost.orders TO BEFORE DROP;
TABLE lost.orders;
BEGIN;
DROP TABLE lost.orders;
FLASHBACK TABLE lost.orders TO BEFORE DROP RENAME TO early;
ROLLBACK;
TABLE lost.orders;

-- nobody else's
DROP TABLE lost.orders;
SET ROLE regress_flashback_stranger;
SELECT count(*) FROM lost_tables;
\set VERBOSITY sqlstate
SELECT polar_flashback_before_drop(:older, :'older_lsn');
\set VERBOSITY default
FLASHBACK TABLE lost.orders TO BEFORE DROP;
SET ROLE regress_flashback_watcher;
SELECT kind, count(*) > 0 AS any, count(definition) AS definitions FROM lost_tables WHERE relation_name = 'orders' GROUP BY kind;
FLASHBACK TABLE lost.orders TO BEFORE DROP;
RESET ROLE;
FLASHBACK TABLE lost.orders TO BEFORE DROP;
SELECT relowner::regrole FROM pg_class WHERE oid = 'lost.orders'::regclass;
REVOKE CREATE ON SCHEMA lost FROM regress_flashback_owner;
DROP TABLE lost.orders;
SET ROLE regress_flashback_owner;
FLASHBACK TABLE lost.orders TO BEFORE DROP;
RESET ROLE;

-- what is no dropped table
SELECT polar_flashback_before_drop(1, :'older_lsn');
\set VERBOSITY terse
SELECT polar_flashback_before_drop(:older, '0/1');
\set VERBOSITY sqlstate
SELECT polar_flashback_before_drop(:older, :'older_lsn'::pg_lsn + 1);
\set VERBOSITY default
SELECT polar_flashback_before_drop(:older, 'FFFFFFFF/FFFFFFFF');
SELECT polar_flashback_before_drop(:older, NULL);
SELECT polar_flashback_before_drop(:older, :'older_lsn', '');

-- a schema with all that is in it
CREATE TYPE lost.mood AS ENUM ('sad');
CREATE TABLE lost.lost_one (id int);
INSERT INTO lost.lost_one VALUES (1);
CREATE TABLE lost.lost_two (id int, m lost.mood);
CREATE MATERIALIZED VIEW lost.lost_seen AS SELECT 1 AS a;
DROP SCHEMA lost CASCADE;
SELECT relation_name, kind, definition FROM lost_tables WHERE relation_name IN ('lost_one', 'lost_two', 'lost_seen');
FLASHBACK TABLE lost_one TO BEFORE DROP;
SELECT relation, lsn FROM polar_flashback_dropped() WHERE relation_name = 'lost_one' \gset
\set VERBOSITY terse
FLASHBACK TABLE lost.lost_one TO BEFORE DROP;
\set VERBOSITY default
SELECT rows FROM polar_flashback_before_drop(:relation, :'lsn', result_schema => 'other');
TABLE other.lost_one;
CREATE SCHEMA lost;
FLASHBACK TABLE lost.lost_two TO BEFORE DROP;
SELECT relation, lsn FROM polar_flashback_dropped() WHERE relation_name = 'lost_two' \gset
SELECT rows FROM polar_flashback_before_drop(:relation, :'lsn', result_schema => 'other');
SELECT relation, lsn FROM polar_flashback_dropped() WHERE relation_name = 'lost_seen' AND schema_name = 'lost' \gset
SELECT rows FROM polar_flashback_before_drop(:relation, :'lsn', result_schema => 'other');

-- a role with all that it owns, and then itself
CREATE TABLE other.owned (id int);
ALTER TABLE other.owned OWNER TO regress_flashback_owner;
DROP OWNED BY regress_flashback_owner;
DROP ROLE regress_flashback_owner;
SELECT relation_name, owner, definition FROM lost_tables WHERE relation_name = 'owned';
SET ROLE regress_flashback_watcher;
FLASHBACK TABLE other.owned TO BEFORE DROP;
RESET ROLE;
FLASHBACK TABLE other.owned TO BEFORE DROP;
SELECT relowner = current_user::regrole AS ours FROM pg_class WHERE oid = 'other.owned'::regclass;
DROP TABLE other.owned;

-- partitions: each, and the whole
CREATE TABLE other.parts (k int, v text) PARTITION BY LIST (k);
CREATE TABLE other.parts_1 PARTITION OF other.parts FOR VALUES IN (1);
CREATE TABLE other.parts_2 (v text, gone int, k int);
ALTER TABLE other.parts_2 DROP COLUMN gone;
ALTER TABLE other.parts ATTACH PARTITION other.parts_2 FOR VALUES IN (2);
CREATE TABLE other.parts_3 PARTITION OF other.parts FOR VALUES IN (3) PARTITION BY LIST (v);
CREATE TABLE other.parts_3_x PARTITION OF other.parts_3 FOR VALUES IN ('x');
INSERT INTO other.parts SELECT 1 + g % 2, g FROM generate_series(1, 100) g;
INSERT INTO other.parts VALUES (3, 'x');
DROP TABLE other.parts;
SELECT relation_name, kind, has_size FROM lost_tables WHERE relation_name LIKE 'parts%';
FLASHBACK TABLE other.parts_2 TO BEFORE DROP;
SELECT count(*), sum(v::int) FROM other.parts_2;
FLASHBACK TABLE other.parts TO BEFORE DROP;
SELECT k, count(*) FROM other.parts GROUP BY k ORDER BY k;

-- truncated and rewritten ones, which are still there
CREATE TABLE other.emptied (id int);
INSERT INTO other.emptied SELECT generate_series(1, 10);
TRUNCATE other.emptied;
ALTER TABLE other.emptied ALTER id TYPE int8;
VACUUM FULL other.emptied;
SELECT relation_name, kind, definition FROM lost_tables WHERE relation_name = 'emptied';
SELECT relation, lsn FROM polar_flashback_dropped() WHERE relation_name = 'emptied' AND kind = 'truncated' \gset
SELECT result = ('other.polar_flashback_' || :relation)::regclass AS named, rows FROM polar_flashback_before_drop(:relation, :'lsn');
SELECT rows FROM polar_flashback_before_drop(:relation, :'lsn', 'emptied_then');
\d other.emptied_then
CREATE TABLE other.recreated (id int);
INSERT INTO other.recreated VALUES (1);
TRUNCATE other.recreated;
DROP TABLE other.recreated;
SELECT relation_name, kind FROM lost_tables WHERE relation_name = 'recreated';

-- what is not kept
CREATE UNLOGGED TABLE other.unlogged (id int);
DROP TABLE other.unlogged;
FLASHBACK TABLE other.unlogged TO BEFORE DROP;
CREATE TABLE other.purged (id int);
INSERT INTO other.purged VALUES (1);
DROP TABLE other.purged;
SELECT relation, lsn FROM polar_flashback_dropped() WHERE relation_name = 'purged' \gset
SELECT tablespace AS spc, database AS db, relfilenode FROM polar_flashback_recycled ORDER BY commit_lsn DESC LIMIT 1 \gset
SELECT polar_flashback_purge(:spc, :db, :relfilenode);
SELECT count(*) FROM lost_tables WHERE relation_name = 'purged';
SELECT polar_flashback_before_drop(:relation, :'lsn');
FLASHBACK TABLE other.purged TO BEFORE DROP;

DROP VIEW lost_tables;
DROP SCHEMA lost, other CASCADE;
DROP OWNED BY regress_flashback_stranger, regress_flashback_watcher;
DROP ROLE regress_flashback_stranger, regress_flashback_watcher;
