-- What Prisma's schema language cannot say: state words, partial unique indexes, partitioned samples, notifications.
-- The words are those of packages/domain; a test compares them with these constraints.

ALTER TABLE "operation" ADD CONSTRAINT "operation_state_check"
    CHECK ("state" IN ('queued', 'running', 'cancelling', 'succeeded', 'failed', 'cancelled'));
ALTER TABLE "operation" ADD CONSTRAINT "operation_ended_check"
    CHECK (("endedAt" IS NOT NULL) = ("state" IN ('succeeded', 'failed', 'cancelled')));
ALTER TABLE "operation_step" ADD CONSTRAINT "operation_step_state_check"
    CHECK ("state" IN ('pending', 'running', 'succeeded', 'failed', 'cancelled'));
ALTER TABLE "instance" ADD CONSTRAINT "instance_state_check"
    CHECK ("state" IN ('creating', 'stopped', 'starting', 'running', 'stopping', 'crashed', 'deleting', 'unknown'));
ALTER TABLE "instance" ADD CONSTRAINT "instance_intent_check"
    CHECK ("intent" IN ('running', 'stopped', 'deleted'));
ALTER TABLE "instance" ADD CONSTRAINT "instance_role_check"
    CHECK ("role" IN ('primary', 'standby'));
ALTER TABLE "incident" ADD CONSTRAINT "incident_severity_check"
    CHECK ("severity" IN ('warning', 'critical'));
ALTER TABLE "audit_event" ADD CONSTRAINT "audit_event_outcome_check"
    CHECK ("outcome" IN ('allowed', 'denied'));

-- a name is free again once its instance is deleted
CREATE UNIQUE INDEX "instance_one_per_name" ON "instance" ("name") WHERE "deletedAt" IS NULL;
-- two operations on one instance would race for it
CREATE UNIQUE INDEX "operation_one_open_per_instance" ON "operation" ("instanceId")
    WHERE "state" IN ('queued', 'running', 'cancelling');
CREATE UNIQUE INDEX "incident_one_open_per_key" ON "incident" ("key") WHERE "closedAt" IS NULL;

-- ---- samples: a schema of its own, which Prisma does not manage ----

CREATE SCHEMA IF NOT EXISTS "telemetry";

-- one row a sample; values by position in the metric catalogue, null where unknown
CREATE TABLE "telemetry"."sample" (
    "instance_id" uuid NOT NULL,
    "seq" bigint NOT NULL,
    "at" timestamptz NOT NULL,
    "interval_ms" double precision NOT NULL,
    "values" double precision[] NOT NULL,
    PRIMARY KEY ("instance_id", "seq", "at")
) PARTITION BY RANGE ("at");
CREATE INDEX "sample_instance_id_at_idx" ON "telemetry"."sample" ("instance_id", "at");

-- roll-ups by bucket; averages weigh each sample by the time it covers. Seven digits are enough for a chart.
CREATE TABLE "telemetry"."sample_10s" (
    "instance_id" uuid NOT NULL,
    "bucket" timestamptz NOT NULL,
    "covered_ms" double precision NOT NULL,
    "average" real[] NOT NULL,
    "maximum" real[] NOT NULL,
    PRIMARY KEY ("instance_id", "bucket")
) PARTITION BY RANGE ("bucket");
CREATE TABLE "telemetry"."sample_1m" (LIKE "telemetry"."sample_10s" INCLUDING ALL) PARTITION BY RANGE ("bucket");

-- how long each resolution is kept and how long its partitions are; may be updated at any time
CREATE TABLE "telemetry"."retention" (
    "step_seconds" int PRIMARY KEY CHECK ("step_seconds" IN (1, 10, 60)),
    "keep_seconds" int NOT NULL CHECK ("keep_seconds" >= 3600),
    "partition_seconds" int NOT NULL CHECK ("partition_seconds" BETWEEN 60 AND 30 * 86400)
);
INSERT INTO "telemetry"."retention" VALUES (1, 6 * 3600, 3600), (10, 7 * 86400, 86400), (60, 90 * 86400, 7 * 86400);

-- how far each instance's samples are stored and rolled up
CREATE TABLE "telemetry"."sample_cursor" (
    "instance_id" uuid PRIMARY KEY,
    "newest_seq" bigint NOT NULL,
    "newest_at" timestamptz NOT NULL,
    "rolled_10s" timestamptz,
    "rolled_1m" timestamptz
) WITH (fillfactor = 50);

-- ---- notifications: the payload is the id of the row that moved ----

CREATE FUNCTION "notify_id"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify(TG_ARGV[0], to_jsonb(NEW) ->> TG_ARGV[1]);
    RETURN NULL;
END
$$;

CREATE TRIGGER "operation_inserted" AFTER INSERT ON "operation"
    FOR EACH ROW EXECUTE FUNCTION "notify_id"('operation', 'id');
-- wakes a controller, which need not hear of every move it makes itself
CREATE TRIGGER "operation_queued" AFTER INSERT ON "operation"
    FOR EACH ROW EXECUTE FUNCTION "notify_id"('operation_queued', 'id');
CREATE TRIGGER "operation_moved" AFTER UPDATE ON "operation" FOR EACH ROW
    WHEN ((OLD."state", OLD."progress", OLD."message", OLD."cancelAskedAt")
        IS DISTINCT FROM (NEW."state", NEW."progress", NEW."message", NEW."cancelAskedAt"))
    EXECUTE FUNCTION "notify_id"('operation', 'id');
CREATE TRIGGER "operation_step_moved" AFTER INSERT OR UPDATE ON "operation_step"
    FOR EACH ROW EXECUTE FUNCTION "notify_id"('operation', 'operationId');
CREATE TRIGGER "operation_log_written" AFTER INSERT ON "operation_log"
    FOR EACH ROW EXECUTE FUNCTION "notify_id"('operation', 'operationId');

CREATE TRIGGER "instance_inserted" AFTER INSERT ON "instance"
    FOR EACH ROW EXECUTE FUNCTION "notify_id"('instance', 'id');
CREATE TRIGGER "instance_moved" AFTER UPDATE ON "instance" FOR EACH ROW
    WHEN ((OLD."intent", OLD."state", OLD."because", OLD."role", OLD."port", OLD."deletedAt", OLD."engineVersion",
            OLD."observed" -> 'pendingRestart')
        IS DISTINCT FROM (NEW."intent", NEW."state", NEW."because", NEW."role", NEW."port", NEW."deletedAt",
            NEW."engineVersion", NEW."observed" -> 'pendingRestart'))
    EXECUTE FUNCTION "notify_id"('instance', 'id');

CREATE TRIGGER "host_inserted" AFTER INSERT ON "host"
    FOR EACH ROW EXECUTE FUNCTION "notify_id"('host', 'id');
CREATE TRIGGER "host_moved" AFTER UPDATE ON "host" FOR EACH ROW
    WHEN ((OLD."name", OLD."agentUrl", OLD."agentVersion", OLD."fault")
        IS DISTINCT FROM (NEW."name", NEW."agentUrl", NEW."agentVersion", NEW."fault"))
    EXECUTE FUNCTION "notify_id"('host', 'id');

CREATE TRIGGER "incident_moved" AFTER INSERT OR UPDATE ON "incident"
    FOR EACH ROW EXECUTE FUNCTION "notify_id"('incident', 'id');
