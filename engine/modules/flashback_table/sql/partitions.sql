-- partitioned and inherited tables
SET client_min_messages = warning;
CREATE TABLE events (id int, day date, note text) PARTITION BY RANGE (day);
CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM ('2026-01-01') TO ('2026-02-01');
-- other columns, in another order
CREATE TABLE events_2 (note text, gone int, day date, id int);
ALTER TABLE events_2 DROP COLUMN gone;
ALTER TABLE events ATTACH PARTITION events_2 FOR VALUES FROM ('2026-02-01') TO ('2026-03-01');
CREATE TABLE events_3 PARTITION OF events FOR VALUES FROM ('2026-03-01') TO ('2026-05-01') PARTITION BY RANGE (day);
CREATE TABLE events_3a PARTITION OF events_3 FOR VALUES FROM ('2026-03-01') TO ('2026-04-01');
CREATE TABLE events_3b PARTITION OF events_3 FOR VALUES FROM ('2026-04-01') TO ('2026-05-01');
CREATE TABLE alone (LIKE events);
CREATE INDEX ON events (id);
INSERT INTO alone VALUES (100, '2026-06-01', 'not an event');
INSERT INTO events SELECT i, '2026-01-01'::date + i, repeat('x', i * 50) FROM generate_series(0, 119) i;
SELECT clock_timestamp() AS t \gset
SELECT count(*), sum(id), sum(length(note)) FROM events;
DELETE FROM events WHERE id % 3 = 0;

SELECT count(*), sum(id), sum(length(note)) FROM polar_flashback_rows(NULL::events, :'t');
SELECT polar_flashback_count('events', :'t'), polar_flashback_count('events', :'t', 'id < 40');
SELECT polar_flashback_count('events_2', :'t'), polar_flashback_count('events_3', :'t'), polar_flashback_count('events_3b', :'t');
SELECT count(*), sum(id) FROM polar_flashback_visible_rows(NULL::events, :'t', 'id < 40');
SELECT result FROM polar_flashback_table('events', :'t') \gset
SELECT count(*), sum(id), sum(length(note)) FROM :result;
SELECT relkind FROM pg_class WHERE oid = :'result'::regclass;
DROP TABLE :result;
SELECT result FROM polar_flashback_table('events_2', :'t') \gset
SELECT count(*), min(id), max(id) FROM :result;
DROP TABLE :result;
SELECT rows FROM polar_flashback_table('events', :'t', 'indexed', with_indexes => true);
SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 'indexed'::regclass;
DROP TABLE indexed;
SELECT possible, reason, pages > 0 AS pages FROM polar_flashback_check('events', :'t');

-- those that were partitions then count
SET client_min_messages = notice;
ALTER TABLE events ATTACH PARTITION alone FOR VALUES FROM ('2026-06-01') TO ('2026-07-01');
CREATE TABLE events_8 PARTITION OF events FOR VALUES FROM ('2026-08-01') TO ('2026-09-01');
SELECT polar_flashback_count('events', :'t');
ALTER TABLE events DETACH PARTITION events_2;
SELECT polar_flashback_count('events', :'t');
DROP TABLE events_3b;
SELECT polar_flashback_count('events', :'t');

-- and all must be the caller's
SET client_min_messages = warning;
CREATE ROLE regress_flashback_parent;
CREATE ROLE regress_flashback_role;
GRANT CREATE ON SCHEMA public TO regress_flashback_parent;
ALTER TABLE events OWNER TO regress_flashback_parent;
ALTER TABLE events_1 OWNER TO regress_flashback_parent;
ALTER TABLE events_3 OWNER TO regress_flashback_parent;
ALTER TABLE events_3a OWNER TO regress_flashback_parent;
GRANT SELECT ON events TO regress_flashback_role;
GRANT EXECUTE ON FUNCTION polar_flashback_visible_rows TO regress_flashback_role;
SET ROLE regress_flashback_parent;
SELECT polar_flashback_count('events', :'t');
SELECT polar_flashback_count('events_3', :'t');
SET ROLE regress_flashback_role;
SELECT count(*) FROM polar_flashback_visible_rows(NULL::events, :'t');
RESET ROLE;
SELECT clock_timestamp() AS t2 \gset
SET ROLE regress_flashback_role;
SELECT count(*) FROM polar_flashback_visible_rows(NULL::events, :'t2');
SELECT count(*) FROM events;
RESET ROLE;

-- an inherited table is read alone
CREATE TABLE parent (id int);
CREATE TABLE child () INHERITS (parent);
INSERT INTO parent VALUES (1);
INSERT INTO child VALUES (2);
SELECT clock_timestamp() AS t3 \gset
SET client_min_messages = notice;
SELECT polar_flashback_count('parent', :'t3'), polar_flashback_count('child', :'t3');
SET client_min_messages = warning;

DROP TABLE parent, child, events, events_2;
DROP OWNED BY regress_flashback_parent, regress_flashback_role;
DROP ROLE regress_flashback_parent, regress_flashback_role;
