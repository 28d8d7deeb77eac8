-- Stretches of time in which an instance had work and committed none of it, with what it waited for (StallRecord).
-- CreateTable
CREATE TABLE "stall_record" (
    "instanceId" UUID NOT NULL,
    "seq" BIGINT NOT NULL,
    "startedAt" TIMESTAMPTZ(3) NOT NULL,
    "endedAt" TIMESTAMPTZ(3) NOT NULL,
    "cause" TEXT NOT NULL,
    "waits" JSONB NOT NULL,
    "sessions" INTEGER NOT NULL,
    "checkpoint" JSONB,
    "checkpointerStopped" BOOLEAN NOT NULL,
    "device" TEXT,

    CONSTRAINT "stall_record_pkey" PRIMARY KEY ("instanceId","seq")
);

-- CreateIndex
CREATE INDEX "stall_record_instanceId_endedAt_idx" ON "stall_record"("instanceId", "endedAt" DESC);

-- AddForeignKey
ALTER TABLE "stall_record" ADD CONSTRAINT "stall_record_instanceId_fkey" FOREIGN KEY ("instanceId") REFERENCES "instance"("id") ON DELETE CASCADE ON UPDATE CASCADE;
