-- A check of a host's machine: asked by web, carried out by the controller. The newest that ended is kept with the host, and
-- the newest that told something; others are dropped.
-- CreateTable
CREATE TABLE "host_check" (
    "id" UUID NOT NULL,
    "hostId" UUID NOT NULL,
    "actor" TEXT NOT NULL,
    "actorName" TEXT NOT NULL,
    "createdAt" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "takenUntil" TIMESTAMPTZ(3),
    "endedAt" TIMESTAMPTZ(3),
    "result" JSONB,
    "fault" JSONB,

    CONSTRAINT "host_check_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "host_check_hostId_createdAt_idx" ON "host_check"("hostId", "createdAt" DESC);

-- AddForeignKey
ALTER TABLE "host_check" ADD CONSTRAINT "host_check_hostId_fkey" FOREIGN KEY ("hostId") REFERENCES "host"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- one open check of a host is enough
CREATE UNIQUE INDEX "host_check_open" ON "host_check" ("hostId") WHERE "endedAt" IS NULL;
ALTER TABLE "host_check" ADD CONSTRAINT "host_check_end_check"
    CHECK (("endedAt" IS NULL) = ("result" IS NULL AND "fault" IS NULL));
ALTER TABLE "host_check" ADD CONSTRAINT "host_check_either_check"
    CHECK ("result" IS NULL OR "fault" IS NULL);

-- wakes a controller, and web when it is answered
CREATE TRIGGER "host_check_asked" AFTER INSERT ON "host_check"
    FOR EACH ROW EXECUTE FUNCTION "notify_id"('host_check', 'id');
CREATE TRIGGER "host_check_answered" AFTER UPDATE ON "host_check" FOR EACH ROW
    WHEN (OLD."endedAt" IS NULL AND NEW."endedAt" IS NOT NULL)
    EXECUTE FUNCTION "notify_id"('host_check_answered', 'id');
