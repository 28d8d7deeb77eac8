-- What Floe's file of settings held after a change is called a revision everywhere; it was a state.
ALTER TABLE "setting_state" RENAME TO "setting_revision";
ALTER SEQUENCE "setting_state_id_seq" RENAME TO "setting_revision_id_seq";
ALTER TABLE "setting_revision" RENAME CONSTRAINT "setting_state_pkey" TO "setting_revision_pkey";
ALTER TABLE "setting_revision" RENAME CONSTRAINT "setting_state_instanceId_fkey" TO "setting_revision_instanceId_fkey";
ALTER INDEX "setting_state_instanceId_id_idx" RENAME TO "setting_revision_instanceId_id_idx";
ALTER INDEX "setting_state_operationId_instanceId_key" RENAME TO "setting_revision_operationId_instanceId_key";

-- so are the revisions that roll-backs were asked for, also of operations that have not ended
UPDATE "operation" SET "input" = ("input" - 'stateId') || jsonb_build_object('revisionId', "input" -> 'stateId')
 WHERE "kind" IN ('change-settings', 'change-cluster-settings') AND "input" ? 'stateId';
