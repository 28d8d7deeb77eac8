-- One operation can change settings of several members: what it confirmed is unique for each of them.
-- DropIndex
DROP INDEX "setting_change_operationId_name_key";

-- CreateIndex
CREATE UNIQUE INDEX "setting_change_operationId_instanceId_name_key" ON "setting_change"("operationId", "instanceId", "name");

-- DropIndex
DROP INDEX "setting_state_operationId_key";

-- CreateIndex
CREATE UNIQUE INDEX "setting_state_operationId_instanceId_key" ON "setting_state"("operationId", "instanceId");
