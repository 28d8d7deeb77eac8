-- conditions, and options of the result
CREATE EXTENSION flashback_log;
CREATE EXTENSION flashback_table;
SET client_min_messages = warning;

-- the window has a point before anything is read as of a moment in it
DO $$
BEGIN
  FOR i IN 1..600 LOOP
    PERFORM FROM polar_stat_flashback_log WHERE state = 'on';
    EXIT WHEN FOUND;
    PERFORM pg_sleep(0.1);
  END LOOP;
END
$$;
SELECT state FROM polar_stat_flashback_log;

CREATE TABLE items (id int PRIMARY KEY, gone int, kind text COLLATE "C", price numeric, made date,
  doubled numeric GENERATED ALWAYS AS (price * 2) VIRTUAL,
  label text GENERATED ALWAYS AS (kind || '!') STORED);
ALTER TABLE items DROP COLUMN gone;
INSERT INTO items SELECT i, CASE WHEN i % 2 = 0 THEN 'even' ELSE 'Odd' END, i * 1.5, '2026-01-01'::date + i
  FROM generate_series(1, 10) i;
SELECT clock_timestamp() AS t \gset
UPDATE items SET price = 0, kind = 'none';

SELECT * FROM polar_flashback_rows(NULL::items, :'t') ORDER BY id LIMIT 2;
SELECT polar_flashback_count('items', :'t', 'kind = ''even''');
SELECT polar_flashback_count('items', :'t', 'items.price > 6 AND doubled < 20');
SELECT polar_flashback_count('items', :'t', 'items IS NOT NULL');
SELECT polar_flashback_count('items', :'t', 'label = kind || ''!'' AND made BETWEEN ''2026-01-03'' AND date ''2026-01-04''');
SELECT polar_flashback_count('items', :'t', 'NULL');
SELECT polar_flashback_count('items', :'t', NULL);
SELECT polar_flashback_count('items', :'t', 'true');
SELECT id FROM polar_flashback_rows(NULL::items, :'t', 'id % 5 = 0 OR id IN (1, 2)') ORDER BY id;

-- errors are shown in the condition
SELECT polar_flashback_count('items', :'t', 'pricey > 6');
SELECT polar_flashback_count('items', :'t', 'price > ');
SELECT polar_flashback_count('items', :'t', '');
SELECT polar_flashback_count('items', :'t', 'price');
SELECT polar_flashback_count('items', :'t', 'price > 6 -- ; DROP TABLE items');
SELECT polar_flashback_count('items', :'t', 'true; DROP TABLE items');
SELECT polar_flashback_count('items', :'t', 'true FROM items');
SELECT polar_flashback_count('items', :'t', 'true WHERE false');
SELECT polar_flashback_count('items', :'t', 'true, false');
SELECT polar_flashback_count('items', :'t', 'true AS yes');
SELECT polar_flashback_count('items', :'t', 'true UNION SELECT true');
SELECT polar_flashback_count('items', :'t', 'true LIMIT 1');
SELECT polar_flashback_count('items', :'t', 'true ORDER BY 1');
SELECT polar_flashback_count('items', :'t', '*');
SELECT polar_flashback_count('items', :'t', 'items.*');
SELECT polar_flashback_count('items', :'t', 'count(*) > 1');
SELECT polar_flashback_count('items', :'t', 'row_number() OVER () > 1');
SELECT polar_flashback_count('items', :'t', 'generate_series(1, 2) > 1');
SELECT polar_flashback_count('items', :'t', 'id IN (SELECT 1)');
SELECT polar_flashback_count('items', :'t', 'id = $1');
SELECT polar_flashback_count('items', :'t', 'other.id = 1');
SELECT polar_flashback_count('items', :'t', 'ctid IS NOT NULL');
SELECT polar_flashback_count('items', :'t', 'tableoid = 1');
SELECT polar_flashback_count('items', :'t', '1 / (id - 5) > 0');
SELECT * FROM polar_flashback_visible_rows(NULL::items, :'t', 'pricey > 6');
SELECT * FROM polar_flashback_visible_rows(NULL::items, :'t', 'id IN (SELECT 1)');
SELECT count(*) FROM items;

-- it runs with the rights of the caller
CREATE ROLE regress_flashback_user;
CREATE FUNCTION for_nobody(int) RETURNS bool LANGUAGE sql AS 'SELECT true';
REVOKE ALL ON FUNCTION for_nobody FROM PUBLIC;
ALTER TABLE items OWNER TO regress_flashback_user;
SELECT polar_flashback_count('items', :'t', 'for_nobody(id)');
SET ROLE regress_flashback_user;
SELECT polar_flashback_count('items', :'t', 'for_nobody(id)');
RESET ROLE;
ALTER TABLE items OWNER TO CURRENT_USER;

-- a condition may go back itself
CREATE FUNCTION as_many(int, timestamptz) RETURNS bool LANGUAGE sql AS
$$SELECT polar_flashback_count('items', $2) = $1$$;
SELECT polar_flashback_count('items', :'t', format('as_many(id, %L)', :'t'));

-- options
CREATE INDEX items_lower ON items (lower(kind), (price + 1)) WHERE price > 3;
CREATE UNIQUE INDEX items_made ON items (made DESC NULLS LAST) INCLUDE (kind) WITH (fillfactor = 70);
ALTER TABLE items ADD CONSTRAINT items_price UNIQUE (price, id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE items ADD CONSTRAINT items_excluded EXCLUDE USING btree (id WITH =) WHERE (id > 3);
CREATE SCHEMA results;
SELECT result, rows FROM polar_flashback_table('items', :'t', 'old_items', 'results');
SELECT * FROM results.old_items ORDER BY id LIMIT 3;
\d results.old_items
SELECT result, rows, target_lsn IS NOT NULL, point > 0 FROM
  polar_flashback_table('items', :'t', result_schema => 'results', result_name => 'indexed items',
    with_indexes => true, condition => 'id > 2');
SELECT pg_get_indexdef(i.indexrelid), indisunique, indisprimary, c.contype
  FROM pg_index i LEFT JOIN pg_constraint c ON c.conindid = i.indexrelid
  WHERE i.indrelid = 'results."indexed items"'::regclass ORDER BY 1;
SET enable_seqscan = off;
SELECT id FROM results."indexed items" WHERE made = '2026-01-05';
RESET enable_seqscan;
SELECT polar_flashback_table('items', :'t', 'old_items', 'results');
SELECT polar_flashback_table('items', :'t', '', 'results');
SELECT polar_flashback_table('items', :'t', with_indexes => NULL);
SELECT polar_flashback_table(NULL, :'t');
SELECT polar_flashback_table('items', NULL);
-- an error leaves nothing
SELECT polar_flashback_table('items', :'t', 'failed', 'results', condition => '1 / (id - 5) > 0');
SELECT to_regclass('results.failed');
-- what rows cannot have in an index is an error of its own
DELETE FROM items;
CREATE UNIQUE INDEX items_unique ON items (kind);
SELECT polar_flashback_table('items', :'t', 'failed', 'results', with_indexes => true);
SELECT to_regclass('results.failed');

DROP SCHEMA results CASCADE;
DROP TABLE items;
DROP ROLE regress_flashback_user;
