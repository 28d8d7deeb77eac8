-- Operations that only read neither wait for another one of the instance or cluster nor keep one from being ordered. Their
-- kinds are those of packages/domain (`readsOnly`); a test compares them with these indexes.

DROP INDEX "operation_one_open_per_instance";
CREATE UNIQUE INDEX "operation_one_open_per_instance" ON "operation" ("instanceId")
    WHERE "state" IN ('queued', 'running', 'cancelling')
      AND "kind" NOT IN ('preview-flashback', 'compare-flashback', 'export-flashback');

DROP INDEX "operation_one_open_per_cluster";
CREATE UNIQUE INDEX "operation_one_open_per_cluster" ON "operation" ("clusterId")
    WHERE "state" IN ('queued', 'running', 'cancelling')
      AND "kind" NOT IN ('preview-flashback', 'compare-flashback', 'export-flashback');
