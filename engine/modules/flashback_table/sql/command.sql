-- FLASHBACK TABLE: grammar, the expression, errors, transactions, event triggers
SET client_min_messages = warning;

-- the published example
CREATE TABLE test (id int, name text);
INSERT INTO test SELECT i, 'name ' || i FROM generate_series(1, 10000) i;
SELECT clock_timestamp() AS t \gset
DELETE FROM test;
FLASHBACK TABLE test TO TIMESTAMP :'t';
SELECT 'polar_flashback_' || 'test'::regclass::oid AS result \gset
SELECT count(*), sum(id) FROM :result;
SELECT count(*) FROM test;

-- its name is taken now
\set VERBOSITY sqlstate
FLASHBACK TABLE test TO TIMESTAMP :'t';
\set VERBOSITY default
DROP TABLE :result;

-- the expression: anything that gives one time, once
FLASHBACK TABLE public.test TO TIMESTAMP now() + (:'t'::timestamptz - now());
SELECT count(*) FROM :result;
DROP TABLE :result;
FLASHBACK TABLE test TO TIMESTAMP TIMESTAMP WITH TIME ZONE :'t';
DROP TABLE :result;
FLASHBACK TABLE test TO TIMESTAMP :'t'::timestamptz AT TIME ZONE current_setting('TimeZone');
DROP TABLE :result;
CREATE TABLE deploys (at timestamptz);
INSERT INTO deploys VALUES (:'t');
FLASHBACK TABLE test TO TIMESTAMP (SELECT max(at) FROM deploys);
SELECT count(*) FROM :result;
DROP TABLE :result;
CREATE SEQUENCE evaluated;
FLASHBACK TABLE test TO TIMESTAMP :'t'::timestamptz + (nextval('evaluated') * 0) * interval '1 s';
SELECT last_value FROM evaluated;
DROP TABLE :result;
FLASHBACK TABLE test TO TIMESTAMP $1 \bind :t \g
SELECT count(*) FROM :result;
DROP TABLE :result;
CREATE FUNCTION flash(moment timestamptz) RETURNS void LANGUAGE plpgsql AS
$$BEGIN FLASHBACK TABLE test TO TIMESTAMP moment; END$$;
SELECT flash(:'t');
DROP TABLE :result;
SELECT flash(:'t');
SELECT count(*) FROM :result;
DROP TABLE :result;
CREATE FUNCTION flash_sql(moment timestamptz) RETURNS void LANGUAGE sql AS
$$FLASHBACK TABLE test TO TIMESTAMP moment$$;
SELECT flash_sql(:'t');
DROP TABLE :result;

FLASHBACK TABLE test TO TIMESTAMP NULL;
FLASHBACK TABLE test TO TIMESTAMP 'then';
FLASHBACK TABLE test TO TIMESTAMP 42;
FLASHBACK TABLE test TO TIMESTAMP at;
FLASHBACK TABLE test TO TIMESTAMP (SELECT at FROM deploys WHERE false);
FLASHBACK TABLE test TO TIMESTAMP now() + generate_series(1, 2) * interval '1 s';
FLASHBACK TABLE test TO TIMESTAMP;
FLASHBACK TABLE test TO TIMESTAMP now(), now();
FLASHBACK TABLE test, deploys TO TIMESTAMP now();
FLASHBACK test TO TIMESTAMP now();
EXPLAIN FLASHBACK TABLE test TO TIMESTAMP now();

-- whose table it is not, and what is no table, or not there
CREATE ROLE regress_flashback_none;
GRANT ALL ON test TO regress_flashback_none;
SET ROLE regress_flashback_none;
FLASHBACK TABLE test TO TIMESTAMP :'t';
RESET ROLE;
DROP OWNED BY regress_flashback_none;
DROP ROLE regress_flashback_none;
CREATE VIEW a_view AS SELECT 1 AS id;
CREATE MATERIALIZED VIEW a_matview AS SELECT 1 AS id;
CREATE INDEX an_index ON test (id);
CREATE TYPE a_type AS (id int);
FLASHBACK TABLE a_view TO TIMESTAMP :'t';
FLASHBACK TABLE a_matview TO TIMESTAMP :'t';
FLASHBACK TABLE an_index TO TIMESTAMP :'t';
FLASHBACK TABLE evaluated TO TIMESTAMP :'t';
FLASHBACK TABLE a_type TO TIMESTAMP :'t';
FLASHBACK TABLE nowhere.test TO TIMESTAMP :'t';
FLASHBACK TABLE nothing TO TIMESTAMP :'t';

-- what was never there is not given back
FLASHBACK TABLE gone TO BEFORE DROP;
FLASHBACK TABLE public.gone TO BEFORE DROP RENAME TO back;
FLASHBACK TABLE gone TO BEFORE DROP RENAME TO;
FLASHBACK TABLE gone TO BEFORE;

-- a partitioned table
CREATE TABLE parted (id int) PARTITION BY LIST (id);
CREATE TABLE parted_1 PARTITION OF parted DEFAULT;
INSERT INTO parted VALUES (1), (2);
SELECT clock_timestamp() AS t2 \gset
DELETE FROM parted;
FLASHBACK TABLE parted TO TIMESTAMP :'t2';
SELECT 'polar_flashback_' || 'parted'::regclass::oid AS parted \gset
SELECT * FROM :parted ORDER BY id;
DROP TABLE parted, :parted;

-- transactions
BEGIN;
FLASHBACK TABLE test TO TIMESTAMP :'t';
SELECT count(*) FROM :result;
ROLLBACK;
SELECT to_regclass(:'result');
BEGIN READ ONLY;
FLASHBACK TABLE test TO TIMESTAMP :'t';
ROLLBACK;
BEGIN;
SAVEPOINT s;
FLASHBACK TABLE test TO TIMESTAMP :'t';
ROLLBACK TO s;
FLASHBACK TABLE test TO TIMESTAMP :'t';
PREPARE TRANSACTION 'flashed back';
COMMIT PREPARED 'flashed back';
SELECT count(*) FROM :result;
DROP TABLE :result;

-- event triggers see it like CREATE TABLE AS
CREATE FUNCTION show_command() RETURNS event_trigger LANGUAGE plpgsql AS $$
DECLARE
  command record;
BEGIN
  IF tg_event = 'ddl_command_start' THEN
    RAISE WARNING '% %', tg_event, tg_tag;
  ELSE
    FOR command IN SELECT * FROM pg_event_trigger_ddl_commands() LOOP
      RAISE WARNING '% % % % %', tg_event, tg_tag, command.command_tag, command.object_type,
        regexp_replace(command.object_identity, '\d+', 'oid');
    END LOOP;
  END IF;
END
$$;
CREATE EVENT TRIGGER before_flashback ON ddl_command_start WHEN TAG IN ('flashback table')
  EXECUTE FUNCTION show_command();
CREATE EVENT TRIGGER after_flashback ON ddl_command_end WHEN TAG IN ('FLASHBACK TABLE')
  EXECUTE FUNCTION show_command();
FLASHBACK TABLE test TO TIMESTAMP :'t';
DROP TABLE :result;
CREATE EVENT TRIGGER refused ON table_rewrite WHEN TAG IN ('FLASHBACK TABLE')
  EXECUTE FUNCTION show_command();
DROP EVENT TRIGGER before_flashback, after_flashback;
-- tags are found wherever they sort
CREATE EVENT TRIGGER others ON ddl_command_end WHEN TAG IN ('ALTER AGGREGATE', 'FLASHBACK', 'REVOKE')
  EXECUTE FUNCTION show_command();
CREATE EVENT TRIGGER others ON ddl_command_end WHEN TAG IN ('ALTER AGGREGATE', 'REVOKE', 'SELECT INTO')
  EXECUTE FUNCTION show_command();
DROP EVENT TRIGGER others;

-- the word is still a name
SELECT catcode, barelabel FROM pg_get_keywords() WHERE word = 'flashback';
CREATE TABLE flashback (flashback int, "table" int);
INSERT INTO flashback (flashback) VALUES (1);
SELECT flashback FROM flashback;
SELECT flashback.flashback flashback FROM flashback flashback;
SELECT 1 flashback, 2 AS flashback;
CREATE FUNCTION flashback(flashback int) RETURNS int LANGUAGE plpgsql AS
$$DECLARE before int := flashback; BEGIN flashback := before + 1; RETURN flashback; END$$;
SELECT flashback(1), flashback(flashback => 2);
CREATE TYPE pair AS (flashback int);
CREATE VIEW flashback_view AS SELECT flashback flashback FROM flashback;
SELECT pg_get_viewdef('flashback_view');
SELECT quote_ident('flashback');
SELECT clock_timestamp() AS later \gset
FLASHBACK TABLE flashback TO TIMESTAMP :'later';
PREPARE flashback AS SELECT flashback FROM flashback;
EXECUTE flashback;
DEALLOCATE flashback;

DROP VIEW flashback_view, a_view;
DROP MATERIALIZED VIEW a_matview;
DROP TYPE pair;
