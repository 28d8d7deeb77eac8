-- A heap grows by polar_bulk_extend_size at once, as soon as it is that large.
\getenv abs_builddir PG_ABS_BUILDDIR
\set copy_file :abs_builddir '/results/extend_size.data'
CREATE EXTENSION pg_freespacemap;
CREATE EXTENSION amcheck;
SELECT name, setting, unit, context, min_val, max_val, boot_val FROM pg_settings
  WHERE name ~ '^polar_.*extend_size$' ORDER BY name;
SHOW polar_bulk_extend_size;
SET polar_bulk_extend_size = '9MB';
SET polar_bulk_extend_size = -1;
SET polar_bulk_extend_size = '8MB';
RESET polar_bulk_extend_size;
SET polar_recovery_bulk_extend_size = 0;

CREATE FUNCTION blocks(rel regclass) RETURNS bigint LANGUAGE sql
  AS $$ SELECT pg_relation_size(rel) / current_setting('block_size')::int $$;

-- One row after another, one page a row: the sizes after each growth by more than a page.
CREATE FUNCTION grow(rel regclass, pages int) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
  sizes bigint[] := '{}';
  last_size bigint := blocks(rel);
BEGIN
  FOR i IN 1..pages LOOP
    EXECUTE format('INSERT INTO %s VALUES (%s, repeat(''x'', 7000))', rel, i);
    IF blocks(rel) > last_size + 1 THEN
      sizes := sizes || blocks(rel);
    END IF;
    last_size := blocks(rel);
  END LOOP;
  RETURN sizes;
END $$;
CREATE TABLE heap_t (a int, b text STORAGE PLAIN);
CREATE UNLOGGED TABLE unlogged_t (LIKE heap_t INCLUDING STORAGE);
CREATE TEMP TABLE temp_t (LIKE heap_t INCLUDING STORAGE);
-- By a 16th of its size, as far as that is no burden on the buffer pool.
SELECT grow('heap_t', 1600);
SELECT grow('unlogged_t', 600);
SELECT grow('temp_t', 600);

-- The free space map knows the unused pages, all of them. (The page filled last is corrected later.)
SELECT blocks('heap_t') - 1600 AS unused, count(*) AS known
  FROM pg_freespace('heap_t') WHERE avail > 8000 AND blkno >= 1600;
SELECT blocks('temp_t') - 600 AS unused, count(*) AS known
  FROM pg_freespace('temp_t') WHERE avail > 8000 AND blkno >= 600;

-- So other sessions use them before the table grows again.
\c -
SELECT blocks('heap_t') AS before \gset
INSERT INTO heap_t SELECT g, repeat('x', 7000) FROM generate_series(1, :before - 1600) g;
SELECT blocks('heap_t') = :before AS used;
INSERT INTO heap_t VALUES (0, repeat('x', 7000));
SELECT blocks('heap_t') - :before AS step;
SELECT count(*) = :before + 1 AS all_rows FROM heap_t;
SELECT * FROM verify_heapam('heap_t');

-- 0 is PostgreSQL's own behaviour: one page for one row.
SET polar_bulk_extend_size = 0;
CREATE TABLE zero_t (LIKE heap_t INCLUDING STORAGE);
SELECT grow('zero_t', 600), blocks('zero_t');

-- Smaller steps.
SET polar_bulk_extend_size = 16;
SELECT grow('zero_t', 100);
RESET polar_bulk_extend_size;

-- A page that was added ahead of need has its buffer: none is read back.
CREATE TABLE unread_t (LIKE heap_t INCLUDING STORAGE);
\c -
INSERT INTO unread_t SELECT g, repeat('x', 7000) FROM generate_series(1, 1500) g;
BEGIN;
SELECT pg_stat_force_next_flush();
COMMIT;
SELECT heap_blks_read AS read_back FROM pg_statio_user_tables WHERE relname = 'unread_t';
SELECT blocks('unread_t') BETWEEN 1500 AND 1500 + 65 AS no_waste;

-- COPY and CREATE TABLE AS into a new table skip the free space map, so they grow as in PostgreSQL.
COPY (SELECT g, repeat('x', 7000) FROM generate_series(1, 2000) g) TO :'copy_file';
BEGIN;
CREATE TABLE copied_t (LIKE heap_t INCLUDING STORAGE);
COPY copied_t FROM :'copy_file';
COMMIT;
SELECT blocks('copied_t') BETWEEN 2000 AND 2063 AS no_waste;
SELECT count(*) AS wrong FROM pg_freespace('copied_t') WHERE avail > 8000 AND blkno < 1999;
-- Later COPYs do not.
VACUUM copied_t;
COPY copied_t FROM :'copy_file';
SELECT blocks('copied_t') BETWEEN 4000 AND 4260 AS no_waste, count(*) FILTER (WHERE avail <= 8000) AS unused_unknown
  FROM pg_freespace('copied_t') WHERE blkno > (SELECT max((ctid::text::point)[0]) FROM copied_t);
SELECT count(*) AS wrong FROM pg_freespace('copied_t') WHERE avail > 8000 AND blkno < 3900;
-- Four rows a page, too short to be compressed.
CREATE TABLE selected_t AS
  SELECT g AS a, (SELECT string_agg(md5((100 * g + i)::text), '') FROM generate_series(1, 60) i) AS b
  FROM generate_series(1, 8000) g;
SELECT blocks('selected_t') BETWEEN 2000 AND 2063 AS no_waste;
SELECT count(*) AS wrong FROM pg_freespace('selected_t') WHERE avail > 8000 AND blkno < 1999;
INSERT INTO selected_t SELECT a, b FROM selected_t;
SELECT blocks('selected_t') BETWEEN 4000 AND 4260 AS no_waste, count(*) FROM selected_t;
SELECT * FROM verify_heapam('selected_t');

-- Never-used pages are too few to make VACUUM truncate while rows come in; what DELETE emptied goes.
INSERT INTO heap_t SELECT g, repeat('x', 7000) FROM generate_series(1, 500) g;
SELECT blocks('heap_t') AS before \gset
VACUUM heap_t;
SELECT blocks('heap_t') = :before AS kept;
-- Nor the next one, which skips all used pages because they are all-visible.
VACUUM heap_t;
SELECT blocks('heap_t') = :before AS kept;
DELETE FROM heap_t WHERE ctid >= '(100,0)';
VACUUM heap_t;
SELECT blocks('heap_t');
DELETE FROM heap_t;
VACUUM heap_t;
SELECT blocks('heap_t');

-- A catalog does not grow ahead of need: every new database copies it.
SELECT blocks('pg_proc') AS before \gset
DO $$ BEGIN
  FOR i IN 1..200 LOOP
    EXECUTE format('CREATE FUNCTION extend_size_%s() RETURNS text LANGUAGE sql AS %L', i,
                   'SELECT ' || quote_literal(repeat('y', 1900)));
  END LOOP;
END $$;
SELECT blocks('pg_proc') - :before < 100 AS as_needed;
DO $$ BEGIN
  FOR i IN 1..200 LOOP EXECUTE format('DROP FUNCTION extend_size_%s()', i); END LOOP;
END $$;

-- Rewriting a table leaves nothing unused.
VACUUM FULL copied_t;
SELECT blocks('copied_t');
SELECT * FROM verify_heapam('copied_t');

DROP TABLE heap_t, unlogged_t, zero_t, unread_t, copied_t, selected_t;
DROP FUNCTION grow(regclass, int), blocks(regclass);
DROP EXTENSION pg_freespacemap, amcheck;
