-- How a cluster fails over by itself (AutomaticFailover), and what was decided about it last (AutomaticWord). No cluster does
-- until a person says so.
ALTER TABLE "cluster" ADD COLUMN "automatic" JSONB;
ALTER TABLE "cluster" ADD COLUMN "automaticWord" JSONB;

-- pages are told of both
DROP TRIGGER "cluster_moved" ON "cluster";
CREATE TRIGGER "cluster_moved" AFTER UPDATE ON "cluster" FOR EACH ROW
    WHEN ((OLD."primaryInstanceId", OLD."synchronous", OLD."commitMode", OLD."deletedAt", OLD."automatic", OLD."automaticWord")
        IS DISTINCT FROM (NEW."primaryInstanceId", NEW."synchronous", NEW."commitMode", NEW."deletedAt", NEW."automatic", NEW."automaticWord"))
    EXECUTE FUNCTION "notify_id"('instance', 'primaryInstanceId');

-- the controller gives up what it has ordered by itself, and nothing else: its start of a primary, for a failover
CREATE FUNCTION "give_up_own_operation"("operation_id" uuid) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    UPDATE "operation" SET "cancelAskedAt" = clock_timestamp()
     WHERE "id" = "operation_id" AND "actor" = 'controller' AND "kind" = 'start-instance'
       AND "state" IN ('queued', 'running');
    RETURN FOUND;
END
$$;
REVOKE ALL ON FUNCTION "give_up_own_operation"(uuid) FROM PUBLIC;
