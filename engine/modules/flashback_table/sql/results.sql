-- the tables that flashbacks made, and the comments by which they are known
SET client_min_messages = warning;
SET TimeZone = 'Asia/Kolkata';
CREATE ROLE regress_results_owner;
CREATE ROLE regress_results_other;
CREATE SCHEMA "odd "" schema" AUTHORIZATION regress_results_owner;
SET ROLE regress_results_owner;
CREATE TABLE "odd "" schema"."as of ( 1" (id int, gone int, "v""" text);
ALTER TABLE "odd "" schema"."as of ( 1" DROP COLUMN gone;
INSERT INTO "odd "" schema"."as of ( 1" VALUES (1, 'a');
SELECT clock_timestamp() AS t \gset
ALTER TABLE "odd "" schema"."as of ( 1" ADD COLUMN later int;
RESET ROLE;
SELECT rows FROM polar_flashback_table('"odd "" schema"."as of ( 1"', :'t', 'result') \gset
SELECT regexp_replace(obj_description('"odd "" schema".result'::regclass),
  'as of \S+ \S+\+00 \(table \d+, (columns \d+), position \S+, point \d+\)', 'as of ... (\1)');

CREATE VIEW found AS SELECT result = to_regclass(quote_ident(schema_name) || '.' || quote_ident(result_name)) AS result,
  schema_name, result_name, owner, relation = to_regclass(quote_ident(relation_schema) || '.' || quote_ident(relation_name)) AS relation,
  relation_schema, relation_name, target_time, size_bytes > 0 AS size FROM polar_flashback_results() WHERE owner = 'regress_results_owner';
SELECT result, schema_name, result_name, owner, relation, relation_schema, relation_name, target_time = :'t' AS target_time, size FROM found;

-- names are those of now
ALTER TABLE "odd "" schema"."as of ( 1" RENAME TO renamed;
ALTER TABLE "odd "" schema".result RENAME TO "another result";
ALTER SCHEMA "odd "" schema" RENAME TO plain;
SELECT result, schema_name, result_name, relation, relation_schema, relation_name FROM found;

-- everybody sees their own
GRANT SELECT ON found TO PUBLIC;
SET ROLE regress_results_other;
SELECT count(*) FROM polar_flashback_results() WHERE owner = 'regress_results_owner';
SET ROLE regress_results_owner;
SELECT count(*) FROM polar_flashback_results() WHERE owner = 'regress_results_owner';
RESET ROLE;

-- a comment is not believed about somebody else's table
CREATE TABLE not_theirs (id int);
SELECT format('"public"."not_theirs" as of 2026-01-01 00:00:00+00 (table %s, columns 1, anything)', 'not_theirs'::regclass::oid) AS lie \gset
SET ROLE regress_results_owner;
CREATE TABLE plain.liar (id int);
COMMENT ON TABLE plain.liar IS :'lie';
SELECT count(*) FROM polar_flashback_results() WHERE owner = 'regress_results_owner';
RESET ROLE;
SELECT count(*) FROM polar_flashback_results() WHERE owner = 'regress_results_owner';
SELECT * FROM polar_flashback_compare('not_theirs', NULL, 'plain.liar');
SELECT * FROM polar_flashback_merge('plain.liar', 'not_theirs', true, true, true);
SET ROLE regress_results_owner;
SELECT * FROM polar_flashback_compare('not_theirs', NULL, 'plain.liar');
SELECT * FROM polar_flashback_merge('plain.liar', 'not_theirs', true, true, true);
SELECT * FROM polar_flashback_compare('not_theirs', :'t');
RESET ROLE;

-- nor one that we do not write
SELECT format('%s as of 2026-01-01 00:00:00+00 (table %s, columns 1)', 'x', 'plain.renamed'::regclass::oid) AS lie \gset
CREATE FUNCTION try_comment(comment text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('COMMENT ON TABLE plain.liar IS %L', replace(comment, 'OID', 'plain.renamed'::regclass::oid::text));
  RETURN coalesce((SELECT string_agg(format('%s.%s %s', relation_schema, relation_name, target_time), ';')
    FROM polar_flashback_results() WHERE result_name = 'liar'), 'no result');
END$$;
SELECT left(comment, 80) AS comment, try_comment(comment) FROM (VALUES
  ('"a"."b" as of 2026-01-01 00:00:00+00 (table OID, columns 2)'),
  ('"a"."b" as of 2026-01-01 00:00:00+00 (table OID, columns 2, by hand) and more'),
  ('"gone"."table" as of 2026-01-01 00:00:00+00 (table 1, columns 2)'),
  ('"gone"."table" as of 2026-01-01 00:00:00+00 (table 4294967295, columns 2)'),
  ('"gone"."table" as of 2026-01-01 00:00:00+00 (table 4294967296, columns 2)'),
  ('"gone"."table" as of 2026-01-01 00:00:00+00 (table 99999999999999999999999, columns 2)'),
  ('"gone"."table" as of 2026-01-01 00:00:00+00 (table -1, columns 2)'),
  ('"a"."b" as of 2026-01-01 00:00:00+00 (table OID, columns 99999)'),
  ('"a"."b" as of 2026-13-01 00:00:00+00 (table OID, columns 2)'),
  ('"a"."b" as of  (table OID, columns 2)'),
  ('"a"."b" as of yesterday (table OID, columns 2)'),
  ('"a"."b" as of ' || repeat('1', 1000) || ' (table OID, columns 2)'),
  ('a.b as of 2026-01-01 00:00:00+00 (table OID, columns 2)'),
  ('"a" as of 2026-01-01 00:00:00+00 (table OID, columns 2)'),
  ('""."b" as of 2026-01-01 00:00:00+00 (table OID, columns 2)'),
  ('"' || repeat('a', 64) || '"."b" as of 2026-01-01 00:00:00+00 (table OID, columns 2)'),
  ('"a"."b'), ('"a"."b""'), ('"'), ('x'), ('"a"."b" as of 2026-01-01 00:00:00+00 (table OID, columns 2')) c(comment);

-- of a table that was dropped the comment has the last words
DROP TABLE plain.renamed;
SELECT result, result_name, relation, relation_schema, relation_name, size FROM found;
DROP VIEW found;
DROP FUNCTION try_comment;
DROP TABLE not_theirs;
DROP SCHEMA plain CASCADE;
DROP ROLE regress_results_owner, regress_results_other;
