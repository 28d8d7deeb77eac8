-- An index build leaves nothing unused, whatever the size of its extensions.
CREATE EXTENSION amcheck;
CREATE TABLE built (a int, b text, p point, v tsvector);
INSERT INTO built SELECT g, md5(g::text), point(g % 1000, g / 1000), to_tsvector('simple', md5(g::text))
  FROM generate_series(1, 20000) g;
VACUUM built;

CREATE TABLE sizes (method text, extend_size int, blocks bigint);
DO $$
DECLARE
  extend_size int;
  method text;
BEGIN
  FOREACH extend_size IN ARRAY '{0,1,3,16,512,1024}'::int[] LOOP
    PERFORM set_config('polar_index_create_bulk_extend_size', extend_size::text, true);
    FOREACH method IN ARRAY '{btree(b),hash(b),gist(p),spgist(p),gin(v),brin(a)}'::text[] LOOP
      EXECUTE 'CREATE INDEX built_idx ON built USING ' || method;
      INSERT INTO sizes VALUES (method, extend_size, pg_relation_size('built_idx') / 8192);
      IF method = 'btree(b)' THEN
        PERFORM bt_index_parent_check('built_idx', true, true);
      ELSIF method = 'gin(v)' THEN
        PERFORM gin_index_check('built_idx');
      END IF;
      EXECUTE 'DROP INDEX built_idx';
    END LOOP;
  END LOOP;
END $$;
SELECT method, count(DISTINCT blocks) AS sizes_seen, min(blocks) > 1 AS has_pages FROM sizes GROUP BY method ORDER BY method;

-- Builds on temporary and unlogged tables, and of an empty table.
CREATE TEMP TABLE temp_built AS SELECT * FROM built;
CREATE INDEX temp_idx ON temp_built (b);
CREATE UNLOGGED TABLE unlogged_built AS SELECT * FROM built;
CREATE INDEX unlogged_idx ON unlogged_built (b);
SELECT bt_index_parent_check('unlogged_idx', true, true);
CREATE TABLE empty_built (LIKE built);
CREATE INDEX empty_idx ON empty_built (b);
SELECT pg_relation_size('temp_idx') / 8192 = s.blocks AS temporary,
       pg_relation_size('unlogged_idx') / 8192 = s.blocks AS unlogged,
       pg_relation_size('empty_idx') / 8192 AS empty
  FROM sizes s WHERE method = 'btree(b)' AND extend_size = 0;

-- A build that fails leaves no index behind, and the table usable.
CREATE UNIQUE INDEX fails ON built ((a % 19999));
SELECT count(*) FROM built;

-- Parallel workers scan for a build; REINDEX CONCURRENTLY is a build as well.
SET max_parallel_maintenance_workers = 2;
SET min_parallel_table_scan_size = 0;
CREATE INDEX parallel_idx ON built (b);
REINDEX INDEX CONCURRENTLY parallel_idx;
SELECT pg_relation_size('parallel_idx') / 8192 = s.blocks AS same_size
  FROM sizes s WHERE method = 'btree(b)' AND extend_size = 0;
SELECT bt_index_parent_check('parallel_idx', true, true);

-- CLUSTER writes the table in bulk.
CLUSTER built USING parallel_idx;
SELECT count(*) FROM verify_heapam('built');

DROP TABLE built, sizes, unlogged_built, empty_built;
DROP EXTENSION amcheck;
