-- Why a setting was changed, and what Floe's file held after each change, so that any earlier state can be gone back to.
-- AlterTable
ALTER TABLE "setting_change" ADD COLUMN "reason" TEXT;

-- CreateTable
CREATE TABLE "setting_state" (
    "id" BIGSERIAL NOT NULL,
    "instanceId" UUID NOT NULL,
    "operationId" UUID,
    "at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "managed" JSONB NOT NULL,
    "reason" TEXT,
    "actor" TEXT NOT NULL,
    "actorName" TEXT NOT NULL,

    CONSTRAINT "setting_state_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE UNIQUE INDEX "setting_state_operationId_key" ON "setting_state"("operationId");

-- CreateIndex
CREATE INDEX "setting_state_instanceId_id_idx" ON "setting_state"("instanceId", "id" DESC);

-- AddForeignKey
ALTER TABLE "setting_state" ADD CONSTRAINT "setting_state_instanceId_fkey" FOREIGN KEY ("instanceId") REFERENCES "instance"("id") ON DELETE RESTRICT ON UPDATE CASCADE;
