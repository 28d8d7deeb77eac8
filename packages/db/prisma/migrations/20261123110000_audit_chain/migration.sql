-- Audit rows form a chain: each holds the hash of the one before it and its own, sha256 over every column and that hash.
-- A trigger of the owner writes id, time and hashes; web and controller can insert and read, nothing else.

-- AlterTable
ALTER TABLE "audit_event" ADD COLUMN "previousHash" BYTEA,
ADD COLUMN "hash" BYTEA,
ALTER COLUMN "id" DROP DEFAULT;
-- the trigger numbers without gaps, which a sequence does not
DROP SEQUENCE "audit_event_id_seq";

-- where the chain begins (the last row that was removed) and ends (the newest row); one row
-- CreateTable
CREATE TABLE "audit_chain" (
    "id" INTEGER NOT NULL DEFAULT 1,
    "anchorId" BIGINT NOT NULL,
    "anchorHash" BYTEA NOT NULL,
    "headId" BIGINT NOT NULL,
    "headHash" BYTEA NOT NULL,

    CONSTRAINT "audit_chain_pkey" PRIMARY KEY ("id")
);
ALTER TABLE "audit_chain" ADD CONSTRAINT "audit_chain_id_check" CHECK ("id" = 1);

-- the form that is hashed: a JSON array of the columns in this order, as jsonb prints it, in UTF-8
CREATE FUNCTION "audit_event_hash"("event" "audit_event") RETURNS bytea LANGUAGE sql STABLE
    SET search_path = pg_catalog, public, pg_temp
    RETURN sha256(convert_to(jsonb_build_array(
        ("event")."id", to_char(("event")."at" AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
        ("event")."actor", ("event")."actorName", ("event")."action", ("event")."outcome", ("event")."objectKind",
        ("event")."objectId", ("event")."detail", ("event")."ipAddress", encode(("event")."previousHash", 'hex'))::text,
        'UTF8'));

-- old rows, in the order of their ids; the first one follows a hash of zeros
DO $$
DECLARE
    event "audit_event";
    previous bytea := decode(repeat('00', 32), 'hex');
    first_id bigint := 0;
    last_id bigint := 0;
BEGIN
    FOR event IN SELECT * FROM "audit_event" ORDER BY "id" LOOP
        IF last_id = 0 THEN
            first_id := event."id" - 1;
        END IF;
        event."previousHash" := previous;
        previous := "audit_event_hash"(event);
        UPDATE "audit_event" SET "previousHash" = event."previousHash", "hash" = previous WHERE "id" = event."id";
        last_id := event."id";
    END LOOP;
    INSERT INTO "audit_chain" ("anchorId", "anchorHash", "headId", "headHash")
    VALUES (first_id, decode(repeat('00', 32), 'hex'), last_id, previous);
END
$$;

ALTER TABLE "audit_event" ALTER COLUMN "previousHash" SET NOT NULL,
ALTER COLUMN "hash" SET NOT NULL;

-- Nobody inserts beside somebody else: the row of the chain is locked until the end of the transaction, so that the order
-- of the chain is the order of the commits. Insert audit rows last.
CREATE FUNCTION "audit_event_chained"() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    head "audit_chain";
BEGIN
    SELECT * INTO STRICT head FROM "audit_chain" FOR UPDATE;
    NEW."id" := head."headId" + 1;
    NEW."at" := date_trunc('milliseconds', clock_timestamp());
    NEW."previousHash" := head."headHash";
    NEW."hash" := "audit_event_hash"(NEW);
    UPDATE "audit_chain" SET "headId" = NEW."id", "headHash" = NEW."hash";
    RETURN NEW;
END
$$;
CREATE TRIGGER "audit_event_chained" BEFORE INSERT ON "audit_event"
    FOR EACH ROW EXECUTE FUNCTION "audit_event_chained"();

-- pages go by time and id
-- DropIndex
DROP INDEX "audit_event_at_idx";
-- CreateIndex
CREATE INDEX "audit_event_at_id_idx" ON "audit_event"("at" DESC, "id" DESC);

-- audit rows are kept 90 days at least
UPDATE "record_retention" SET "keepSeconds" = 90 * 86400 WHERE "kind" = 'audit' AND "keepSeconds" < 90 * 86400;
ALTER TABLE "record_retention" DROP CONSTRAINT "record_retention_keep_check";
ALTER TABLE "record_retention" ADD CONSTRAINT "record_retention_keep_check"
    CHECK ("keepSeconds" >= CASE "kind" WHEN 'audit' THEN 90 * 86400 ELSE 86400 END);

-- The oldest rows, as far as all of them are past their retention; the hash of the last one removed is kept as the anchor
-- that the oldest row left follows.
CREATE FUNCTION "prune_audit_events"("at_most" integer) RETURNS integer LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    keep integer := greatest(90 * 86400, (SELECT r."keepSeconds" FROM "record_retention" r WHERE r."kind" = 'audit'));
    last_id bigint;
    removed integer;
BEGIN
    PERFORM FROM "audit_chain" FOR UPDATE;
    SELECT max(o."id") INTO last_id
      FROM (SELECT e."id", bool_and(e."at" < now() - make_interval(secs => keep)) OVER (ORDER BY e."id") AS past
              FROM (SELECT "id", "at" FROM "audit_event" ORDER BY "id" LIMIT "at_most") e) o
     WHERE o.past;
    IF last_id IS NULL THEN
        RETURN 0;
    END IF;
    UPDATE "audit_chain" SET "anchorId" = e."id", "anchorHash" = e."hash" FROM "audit_event" e WHERE e."id" = last_id;
    DELETE FROM "audit_event" WHERE "id" <= last_id;
    GET DIAGNOSTICS removed = ROW_COUNT;
    RETURN removed;
END
$$;

-- ---- the verifier of the owner's password, in the input of the operation that creates an instance ----

-- A retry needs it until the instance is there, or is deleted. A retry may be of another instance of the same name: what it
-- retried, and what else retried that, does not need it either.
CREATE FUNCTION "operation_verifier_removed"() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    WITH RECURSIVE tried ("id", "retryOf") AS (
        SELECT o."id", o."retryOf" FROM "operation" o
         WHERE o."instanceId" = NEW."instanceId" AND o."kind" = 'create-instance'
        UNION
        SELECT o."id", o."retryOf" FROM "operation" o JOIN tried t ON o."id" = t."retryOf" OR o."retryOf" = t."id")
    UPDATE "operation" o SET "input" = o."input" - 'ownerPasswordVerifier' FROM tried t
     WHERE o."id" = t."id" AND o."input" ? 'ownerPasswordVerifier';
    RETURN NULL;
END
$$;
CREATE TRIGGER "operation_verifier_removed" AFTER UPDATE OF "state" ON "operation" FOR EACH ROW
    WHEN (NEW."state" = 'succeeded' AND NEW."kind" IN ('create-instance', 'delete-instance'))
    EXECUTE FUNCTION "operation_verifier_removed"();
UPDATE "operation" o SET "input" = "input" - 'ownerPasswordVerifier'
 WHERE "kind" = 'create-instance' AND "input" ? 'ownerPasswordVerifier' AND EXISTS (
     SELECT FROM "operation" d WHERE d."instanceId" = o."instanceId" AND d."state" = 'succeeded'
        AND d."kind" IN ('create-instance', 'delete-instance'));
