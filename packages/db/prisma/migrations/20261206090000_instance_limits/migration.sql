-- How much of its host an instance may use (InstanceLimits), as its agent confirmed it last; null: all of it. And who changed
-- that when and why.
ALTER TABLE "instance" ADD COLUMN "limits" JSONB;

-- CreateTable
CREATE TABLE "limit_change" (
    "id" BIGSERIAL NOT NULL,
    "instanceId" UUID NOT NULL,
    "operationId" UUID NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "before" JSONB,
    "after" JSONB NOT NULL,
    "reason" TEXT,
    "actor" TEXT NOT NULL,
    "actorName" TEXT NOT NULL,

    CONSTRAINT "limit_change_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE UNIQUE INDEX "limit_change_operationId_key" ON "limit_change"("operationId");

-- CreateIndex
CREATE INDEX "limit_change_instanceId_id_idx" ON "limit_change"("instanceId", "id" DESC);

-- AddForeignKey
ALTER TABLE "limit_change" ADD CONSTRAINT "limit_change_instanceId_fkey" FOREIGN KEY ("instanceId") REFERENCES "instance"("id") ON DELETE RESTRICT ON UPDATE CASCADE;
