-- Who gives the members of a cluster torn pages back; null: every standby.
ALTER TABLE "cluster" ADD COLUMN "pageRepair" JSONB;

-- What each recovery after a crash found torn and repaired.
CREATE TABLE "recovery_record" (
    "instanceId" UUID NOT NULL,
    "startedAt" TIMESTAMPTZ(3) NOT NULL,
    "endedAt" TIMESTAMPTZ(3),
    "kind" TEXT NOT NULL,
    "policy" TEXT NOT NULL,
    "checked" BIGINT NOT NULL,
    "torn" BIGINT NOT NULL,
    "repaired" BIGINT NOT NULL,
    "cleared" BIGINT NOT NULL DEFAULT 0,
    "bytes" BIGINT NOT NULL,
    "sources" JSONB NOT NULL,

    CONSTRAINT "recovery_record_pkey" PRIMARY KEY ("instanceId", "startedAt")
);
ALTER TABLE "recovery_record" ADD CONSTRAINT "recovery_record_instanceId_fkey"
  FOREIGN KEY ("instanceId") REFERENCES "instance"("id") ON DELETE CASCADE ON UPDATE CASCADE;
