-- Consecutive blocks that leave a ring, and those of a checkpoint, are written together.
SELECT name, setting, unit, context, min_val, max_val, boot_val FROM pg_settings
  WHERE name = 'polar_bulk_write_size';
SET polar_bulk_write_size = '2MB';
SET polar_bulk_write_size = -1;

-- Larger than a ring, so that most blocks leave it.
CREATE TABLE source (a int, b text);
INSERT INTO source SELECT g, repeat('x', 1900) FROM generate_series(1, 16000) g;

-- Requests and blocks that sessions have written in a context.
CREATE FUNCTION written(in_context text, OUT requests bigint, OUT blocks bigint) LANGUAGE sql AS $$
  SELECT coalesce(sum(writes), 0)::bigint, coalesce(sum(write_bytes) / 8192, 0)::bigint FROM pg_stat_io
    WHERE backend_type = 'client backend' AND object = 'relation' AND context = in_context $$;

CREATE TABLE measured (size text, requests bigint, blocks bigint);
SET polar_bulk_write_size = '0';
SELECT * FROM written('bulkwrite') \gset before_
CREATE TABLE copied_0 AS SELECT * FROM source;
SELECT count(*) AS flushed FROM pg_stat_force_next_flush();
INSERT INTO measured SELECT '0', requests - :before_requests, blocks - :before_blocks FROM written('bulkwrite');
SET polar_bulk_write_size = '8kB';
SELECT * FROM written('bulkwrite') \gset before_
CREATE TABLE copied_1 AS SELECT * FROM source;
SELECT count(*) AS flushed FROM pg_stat_force_next_flush();
INSERT INTO measured SELECT '8kB', requests - :before_requests, blocks - :before_blocks FROM written('bulkwrite');
SET polar_bulk_write_size = '128kB';
SELECT * FROM written('bulkwrite') \gset before_
CREATE TABLE copied_2 AS SELECT * FROM source;
SELECT count(*) AS flushed FROM pg_stat_force_next_flush();
INSERT INTO measured SELECT '128kB', requests - :before_requests, blocks - :before_blocks FROM written('bulkwrite');
SET polar_bulk_write_size = '1MB';
SELECT * FROM written('bulkwrite') \gset before_
CREATE TABLE copied_3 AS SELECT * FROM source;
SELECT count(*) AS flushed FROM pg_stat_force_next_flush();
INSERT INTO measured SELECT '1MB', requests - :before_requests, blocks - :before_blocks FROM written('bulkwrite');
SELECT size, blocks > 1000 AS ring_was_left, blocks / requests AS blocks_per_request
  FROM measured WHERE size IN ('0', '8kB');
-- A run ends at a page that someone uses or has written; most are as long as they may be.
SELECT size, blocks > 1000 AS ring_was_left, blocks / requests > 8 AS in_runs FROM measured WHERE size = '128kB';
SELECT size, blocks > 1000 AS ring_was_left, blocks / requests > 40 AS in_runs FROM measured WHERE size = '1MB';
CREATE TABLE copied AS SELECT * FROM copied_3;
SELECT count(*), sum(a), count(*) FILTER (WHERE b = repeat('x', 1900)) AS whole FROM copied;

-- What COPY and VACUUM write is what was there.
RESET polar_bulk_write_size;
CREATE INDEX copied_a ON copied (a);
DELETE FROM copied WHERE a % 3 = 0;
VACUUM (BUFFER_USAGE_LIMIT '256kB') copied;
CHECKPOINT;
SELECT count(*), sum(a) FROM copied;
CREATE EXTENSION amcheck;
SELECT * FROM verify_heapam('copied');
SELECT bt_index_check('copied_a', true);

DROP EXTENSION amcheck;
DROP TABLE source, measured, copied, copied_0, copied_1, copied_2, copied_3;
DROP FUNCTION written(text);
