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
