-- Clusters: a primary and its standbys. Every instance belongs to one; a single instance is a cluster of one.

CREATE TABLE "cluster" (
    "id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "control" TEXT NOT NULL DEFAULT 'agent',
    "primaryInstanceId" UUID NOT NULL,
    "synchronous" JSONB,
    "commitMode" TEXT NOT NULL DEFAULT 'on',
    "createdAt" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "deletedAt" TIMESTAMPTZ(3),

    CONSTRAINT "cluster_pkey" PRIMARY KEY ("id")
);
ALTER TABLE "cluster" ADD CONSTRAINT "cluster_control_check" CHECK ("control" IN ('agent'));
ALTER TABLE "cluster" ADD CONSTRAINT "cluster_commit_mode_check"
    CHECK ("commitMode" IN ('remote_apply', 'on', 'remote_write', 'local', 'off'));
CREATE UNIQUE INDEX "cluster_one_per_name" ON "cluster" ("name") WHERE "deletedAt" IS NULL;

ALTER TABLE "instance" ADD COLUMN "clusterId" UUID,
    ADD COLUMN "memberRole" TEXT NOT NULL DEFAULT 'primary',
    ADD COLUMN "fenceOrderedAt" TIMESTAMPTZ(3);
ALTER TABLE "operation" ADD COLUMN "clusterId" UUID;

INSERT INTO "cluster" ("id", "name", "primaryInstanceId", "createdAt", "deletedAt")
    SELECT "id", "name", "id", "createdAt", "deletedAt" FROM "instance";
UPDATE "instance" SET "clusterId" = "id";
UPDATE "operation" SET "clusterId" = "instanceId";

ALTER TABLE "instance" ADD CONSTRAINT "instance_member_role_check"
    CHECK ("memberRole" IN ('primary', 'standby', 'fenced'));
ALTER TABLE "instance" ADD CONSTRAINT "instance_clusterId_fkey" FOREIGN KEY ("clusterId")
    REFERENCES "cluster"("id") ON DELETE SET NULL ON UPDATE CASCADE;
CREATE INDEX "instance_clusterId_idx" ON "instance"("clusterId");

-- whoever makes an instance and names no cluster makes a cluster of one, with the instance's id and name
CREATE FUNCTION "cluster_of_one"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW."clusterId" IS NULL THEN
        INSERT INTO "cluster" ("id", "name", "primaryInstanceId") VALUES (NEW."id", NEW."name", NEW."id");
        NEW."clusterId" := NEW."id";
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER "instance_in_cluster" BEFORE INSERT ON "instance"
    FOR EACH ROW EXECUTE FUNCTION "cluster_of_one"();

-- a cluster ends with its last member; its name is free again then
CREATE FUNCTION "cluster_ends"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE "cluster" c SET "deletedAt" = clock_timestamp()
     WHERE c."id" = NEW."clusterId" AND c."deletedAt" IS NULL
       AND NOT EXISTS (SELECT 1 FROM "instance" i WHERE i."clusterId" = c."id" AND i."deletedAt" IS NULL);
    RETURN NULL;
END
$$;
CREATE TRIGGER "instance_leaves_cluster" AFTER UPDATE OF "deletedAt" ON "instance" FOR EACH ROW
    WHEN (NEW."deletedAt" IS NOT NULL) EXECUTE FUNCTION "cluster_ends"();

-- one queue per cluster: two operations on members of one cluster would race for its primary
CREATE FUNCTION "operation_of_cluster"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW."clusterId" IS NULL THEN
        SELECT i."clusterId" INTO NEW."clusterId" FROM "instance" i WHERE i."id" = NEW."instanceId";
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER "operation_in_cluster" BEFORE INSERT ON "operation"
    FOR EACH ROW EXECUTE FUNCTION "operation_of_cluster"();
CREATE UNIQUE INDEX "operation_one_open_per_cluster" ON "operation" ("clusterId")
    WHERE "state" IN ('queued', 'running', 'cancelling');

CREATE TRIGGER "cluster_moved" AFTER UPDATE ON "cluster" FOR EACH ROW
    WHEN ((OLD."primaryInstanceId", OLD."synchronous", OLD."commitMode", OLD."deletedAt")
        IS DISTINCT FROM (NEW."primaryInstanceId", NEW."synchronous", NEW."commitMode", NEW."deletedAt"))
    EXECUTE FUNCTION "notify_id"('instance', 'primaryInstanceId');
