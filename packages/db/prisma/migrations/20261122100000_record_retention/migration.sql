-- How long rows are kept that grow with use: operations (with steps and log), incidents, sessions, audit rows.
-- May be updated at any time, like telemetry.retention.
-- CreateTable
CREATE TABLE "record_retention" (
    "kind" TEXT NOT NULL,
    "keepSeconds" INTEGER NOT NULL,

    CONSTRAINT "record_retention_pkey" PRIMARY KEY ("kind")
);

ALTER TABLE "record_retention" ADD CONSTRAINT "record_retention_kind_check"
    CHECK ("kind" IN ('operation', 'incident', 'session', 'audit'));
-- less than a day would take away what a person has just done
ALTER TABLE "record_retention" ADD CONSTRAINT "record_retention_keep_check" CHECK ("keepSeconds" >= 86400);

INSERT INTO "record_retention" ("kind", "keepSeconds") VALUES
    ('operation', 90 * 86400),
    ('incident', 180 * 86400),
    ('session', 7 * 86400),
    ('audit', 400 * 86400);
