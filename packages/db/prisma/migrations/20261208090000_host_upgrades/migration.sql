-- An upgrade of a host's instances: asked by web, carried out by the controller, which orders one operation after another.
-- CreateTable
CREATE TABLE "host_upgrade" (
    "id" UUID NOT NULL,
    "hostId" UUID NOT NULL,
    "build" TEXT NOT NULL,
    "switchBack" BOOLEAN NOT NULL DEFAULT false,
    "except" JSONB NOT NULL DEFAULT '[]',
    "actor" TEXT NOT NULL,
    "actorName" TEXT NOT NULL,
    "createdAt" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "cancelAskedAt" TIMESTAMPTZ(3),
    "takenUntil" TIMESTAMPTZ(3),
    "endedAt" TIMESTAMPTZ(3),
    "ordered" JSONB NOT NULL DEFAULT '[]',
    "message" TEXT,
    "left" JSONB,
    "fault" JSONB,

    CONSTRAINT "host_upgrade_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "host_upgrade_hostId_createdAt_idx" ON "host_upgrade"("hostId", "createdAt" DESC);

-- AddForeignKey
ALTER TABLE "host_upgrade" ADD CONSTRAINT "host_upgrade_hostId_fkey" FOREIGN KEY ("hostId") REFERENCES "host"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- two at once would order against each other
CREATE UNIQUE INDEX "host_upgrade_open" ON "host_upgrade" ("hostId") WHERE "endedAt" IS NULL;
ALTER TABLE "host_upgrade" ADD CONSTRAINT "host_upgrade_end_check"
    CHECK ("endedAt" IS NOT NULL OR "fault" IS NULL);
