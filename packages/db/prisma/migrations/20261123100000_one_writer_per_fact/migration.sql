-- The roles of web and controller may write their own facts only (tools/grants.mjs). What follows from one of them in a
-- column or table of the other is written by the owner's triggers and functions here.

-- these write rows that their caller may not
ALTER FUNCTION "cluster_of_one"() SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp;
ALTER FUNCTION "cluster_ends"() SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp;
ALTER FUNCTION "tell_of_incident"() SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp;

-- an instance that is deleted has nothing observed any more, one that is made again has nothing observed yet
CREATE FUNCTION "instance_deleted"() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    IF OLD."deletedAt" IS NULL AND NEW."deletedAt" IS NOT NULL THEN
        NEW."intent" := 'deleted';
        NEW."state" := 'unknown';
        IF NEW."because" IS NOT DISTINCT FROM OLD."because" THEN
            NEW."because" := CASE
                WHEN EXISTS (SELECT FROM "host" h WHERE h."id" = NEW."hostId" AND h."removedAt" IS NOT NULL)
                    THEN 'its host was removed'
                WHEN NEW."observedAt" IS NULL THEN 'it was never made'
                ELSE 'it was deleted' END;
        END IF;
    ELSIF OLD."deletedAt" IS NOT NULL AND NEW."deletedAt" IS NULL THEN
        NEW."state" := 'unknown';
        NEW."because" := NULL;
        NEW."observedAt" := NULL;
        NEW."observed" := NULL;
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER "instance_deleted" BEFORE UPDATE OF "deletedAt" ON "instance"
    FOR EACH ROW EXECUTE FUNCTION "instance_deleted"();

-- web writes that somebody asked; what becomes of the operation then is decided here
CREATE FUNCTION "operation_cancel_asked"() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    IF OLD."state" = 'queued' THEN
        NEW."state" := 'cancelled';
        NEW."endedAt" := NEW."cancelAskedAt";
    ELSIF OLD."state" = 'running' THEN
        NEW."state" := 'cancelling';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER "operation_cancel_asked" BEFORE UPDATE OF "cancelAskedAt" ON "operation" FOR EACH ROW
    WHEN (OLD."cancelAskedAt" IS NULL AND NEW."cancelAskedAt" IS NOT NULL)
    EXECUTE FUNCTION "operation_cancel_asked"();

-- the one change of an operation's input after it was submitted: a fast stop or restart becomes an immediate one
CREATE FUNCTION "hasten_operation"("operation_id" uuid) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    UPDATE "operation" SET "input" = "input" || '{"mode": "immediate", "hastened": true}'
     WHERE "id" = "operation_id" AND "kind" IN ('stop-instance', 'restart-instance')
       AND "state" IN ('queued', 'running', 'cancelling') AND coalesce("input" ->> 'mode', 'fast') = 'fast';
    RETURN FOUND;
END
$$;

-- web cannot queue a message of its own words
CREATE FUNCTION "queue_webhook_test"("webhook_id" uuid) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    INSERT INTO "webhook_delivery" ("webhookId", "event", "body")
    SELECT w."id", 'webhook.test',
           jsonb_build_object('type', 'webhook.test', 'timestamp', to_jsonb(now()), 'data', '{}'::jsonb)
      FROM "webhook" w WHERE w."id" = "webhook_id";
    RETURN FOUND;
END
$$;

-- ---- rows past their retention: nobody deletes them but these ----

-- that an instance was created is told from its operation; what is being retried is still read
CREATE FUNCTION "prune_operations"("at_most" integer) RETURNS integer LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    removed integer;
BEGIN
    DELETE FROM "operation" WHERE "id" IN (
        SELECT o."id" FROM "operation" o
         WHERE o."endedAt" < now() - make_interval(secs =>
                 (SELECT r."keepSeconds" FROM "record_retention" r WHERE r."kind" = 'operation'))
           AND NOT (o."kind" LIKE 'create-%' AND o."state" = 'succeeded' AND EXISTS (
                 SELECT FROM "instance" i WHERE i."id" = o."instanceId" AND i."deletedAt" IS NULL))
           AND NOT EXISTS (SELECT FROM "operation" r WHERE r."retryOf" = o."id" AND r."endedAt" IS NULL)
         ORDER BY o."endedAt" LIMIT "at_most");
    GET DIAGNOSTICS removed = ROW_COUNT;
    RETURN removed;
END
$$;

CREATE FUNCTION "prune_incidents"("at_most" integer) RETURNS integer LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    removed integer;
BEGIN
    DELETE FROM "incident" WHERE "id" IN (
        SELECT n."id" FROM "incident" n WHERE n."closedAt" < now() - make_interval(secs =>
            (SELECT r."keepSeconds" FROM "record_retention" r WHERE r."kind" = 'incident')) LIMIT "at_most");
    GET DIAGNOSTICS removed = ROW_COUNT;
    RETURN removed;
END
$$;

CREATE FUNCTION "prune_sessions"("at_most" integer) RETURNS integer LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    removed integer;
BEGIN
    DELETE FROM "session" WHERE "id" IN (
        SELECT s."id" FROM "session" s WHERE s."expiresAt" < now() - make_interval(secs =>
            (SELECT r."keepSeconds" FROM "record_retention" r WHERE r."kind" = 'session')) LIMIT "at_most");
    GET DIAGNOSTICS removed = ROW_COUNT;
    RETURN removed;
END
$$;

-- ---- partitions of samples: made and dropped by the controller, owned by the owner of their table ----

CREATE FUNCTION "telemetry"."make_partition"("step" integer, "lower" timestamptz, "upper" timestamptz) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET "DateStyle" = 'ISO' SET "TimeZone" = 'UTC'
    AS $$
DECLARE
    parent text := CASE "step" WHEN 1 THEN 'sample' WHEN 10 THEN 'sample_10s' WHEN 60 THEN 'sample_1m' END;
    field text := CASE "step" WHEN 1 THEN 'at' ELSE 'bucket' END;
    part text := parent || to_char("lower" AT TIME ZONE 'UTC', '"_"YYYYMMDD"_"HH24MISS');
BEGIN
    IF parent IS NULL OR "lower" >= "upper" OR "upper" - "lower" > interval '30 days' THEN
        RAISE EXCEPTION 'invalid partition of samples' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    EXECUTE format('CREATE TABLE telemetry.%I (LIKE telemetry.%I INCLUDING DEFAULTS INCLUDING CONSTRAINTS,'
        ' CHECK (%I >= %L AND %I < %L))', part, parent, field, "lower", field, "upper");
    EXECUTE format('ALTER TABLE telemetry.%I ATTACH PARTITION telemetry.%I FOR VALUES FROM (%L) TO (%L)',
        parent, part, "lower", "upper");
END
$$;

-- false where there is no such partition
CREATE FUNCTION "telemetry"."drop_partition"("name" text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET "DateStyle" = 'ISO' SET "TimeZone" = 'UTC'
    AS $$
DECLARE
    ends timestamptz;
    step integer;
BEGIN
    SELECT substring(pg_get_expr(c.relpartbound, c.oid) FROM 'TO \(''([^'']+)''\)')::timestamptz,
           CASE p.relname WHEN 'sample' THEN 1 WHEN 'sample_10s' THEN 10 WHEN 'sample_1m' THEN 60 END
      INTO ends, step
      FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_class p ON p.oid = i.inhparent
     WHERE c.relname = "drop_partition"."name" AND c.relnamespace = 'telemetry'::regnamespace
       AND p.relnamespace = 'telemetry'::regnamespace;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF ends IS NULL OR step IS NULL OR ends > now() - make_interval(secs =>
            (SELECT r.keep_seconds FROM telemetry.retention r WHERE r.step_seconds = step)) THEN
        RAISE EXCEPTION 'partition "%" is not past its retention', "name" USING ERRCODE = 'object_in_use';
    END IF;
    EXECUTE format('DROP TABLE telemetry.%I', "name");
    RETURN true;
END
$$;

