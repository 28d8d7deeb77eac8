-- Who has taken note of an incident, and why it was closed.
-- AlterTable
ALTER TABLE "incident" ADD COLUMN "closedBecause" TEXT,
ADD COLUMN "acknowledgedAt" TIMESTAMPTZ(3),
ADD COLUMN "acknowledgedBy" TEXT,
ADD COLUMN "acknowledgedByName" TEXT;

ALTER TABLE "incident" ADD CONSTRAINT "incident_acknowledged_check"
    CHECK (("acknowledgedAt" IS NULL) = ("acknowledgedBy" IS NULL) AND ("acknowledgedBy" IS NULL) = ("acknowledgedByName" IS NULL));
ALTER TABLE "incident" ADD CONSTRAINT "incident_closed_check"
    CHECK ("closedBecause" IS NULL OR "closedAt" IS NOT NULL);

-- the order of the page: open ones first, each newest first
CREATE INDEX "incident_open_first" ON "incident" (("closedAt" IS NULL) DESC, "openedAt" DESC, "id" DESC);

-- webhooks are told why, too
CREATE OR REPLACE FUNCTION "tell_of_incident"() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    event text := CASE WHEN NEW."closedAt" IS NULL THEN 'incident.opened' ELSE 'incident.closed' END;
BEGIN
    INSERT INTO "webhook_delivery" ("webhookId", "event", "incidentId", "body")
    SELECT w."id", event, NEW."id",
           jsonb_build_object('type', event, 'timestamp', to_jsonb(coalesce(NEW."closedAt", NEW."openedAt")), 'data',
               jsonb_build_object('incidentId', NEW."id", 'key', NEW."key", 'severity', NEW."severity", 'title', NEW."title",
                   'detail', NEW."detail", 'hint', NEW."hint", 'hostId', NEW."hostId", 'instanceId', NEW."instanceId",
                   'operationId', NEW."operationId", 'openedAt', to_jsonb(NEW."openedAt"), 'closedAt', to_jsonb(NEW."closedAt"),
                   'closedBecause', NEW."closedBecause"))
      FROM "webhook" w;
    RETURN NULL;
END
$$;
