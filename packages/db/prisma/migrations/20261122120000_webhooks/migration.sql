-- Who is told of incidents, and what is still to be told. No secret stands here: it follows from the installation's own
-- and the webhook's id.
-- CreateTable
CREATE TABLE "webhook" (
    "id" UUID NOT NULL,
    "url" TEXT NOT NULL,
    "createdAt" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "actor" TEXT NOT NULL,
    "actorName" TEXT NOT NULL,

    CONSTRAINT "webhook_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "webhook_delivery" (
    "id" UUID NOT NULL DEFAULT gen_random_uuid(),
    "webhookId" UUID NOT NULL,
    "event" TEXT NOT NULL,
    "incidentId" UUID,
    "createdAt" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "body" JSONB NOT NULL,
    "attempts" INTEGER NOT NULL DEFAULT 0,
    "nextAttemptAt" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "deliveredAt" TIMESTAMPTZ(3),
    "givenUpAt" TIMESTAMPTZ(3),
    "error" TEXT,

    CONSTRAINT "webhook_delivery_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "webhook_delivery_webhookId_createdAt_idx" ON "webhook_delivery"("webhookId", "createdAt" DESC);

-- AddForeignKey
ALTER TABLE "webhook_delivery" ADD CONSTRAINT "webhook_delivery_webhookId_fkey" FOREIGN KEY ("webhookId") REFERENCES "webhook"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- what is still to be sent is found without reading what was
CREATE INDEX "webhook_delivery_due" ON "webhook_delivery" ("nextAttemptAt") WHERE "deliveredAt" IS NULL AND "givenUpAt" IS NULL;
ALTER TABLE "webhook_delivery" ADD CONSTRAINT "webhook_delivery_event_check"
    CHECK ("event" IN ('incident.opened', 'incident.closed', 'webhook.test'));

-- an incident and what has to be told of it are one transaction, whoever opens or closes it
CREATE FUNCTION "tell_of_incident"() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    event text := CASE WHEN NEW."closedAt" IS NULL THEN 'incident.opened' ELSE 'incident.closed' END;
BEGIN
    INSERT INTO "webhook_delivery" ("webhookId", "event", "incidentId", "body")
    SELECT w."id", event, NEW."id",
           jsonb_build_object('type', event, 'timestamp', to_jsonb(coalesce(NEW."closedAt", NEW."openedAt")), 'data',
               jsonb_build_object('incidentId', NEW."id", 'key', NEW."key", 'severity', NEW."severity", 'title', NEW."title",
                   'detail', NEW."detail", 'hint', NEW."hint", 'hostId', NEW."hostId", 'instanceId', NEW."instanceId",
                   'operationId', NEW."operationId", 'openedAt', to_jsonb(NEW."openedAt"), 'closedAt', to_jsonb(NEW."closedAt")))
      FROM "webhook" w;
    RETURN NULL;
END
$$;
CREATE TRIGGER "incident_opened_told" AFTER INSERT ON "incident"
    FOR EACH ROW EXECUTE FUNCTION "tell_of_incident"();
CREATE TRIGGER "incident_closed_told" AFTER UPDATE ON "incident" FOR EACH ROW
    WHEN (OLD."closedAt" IS NULL AND NEW."closedAt" IS NOT NULL)
    EXECUTE FUNCTION "tell_of_incident"();

-- wakes a controller
CREATE TRIGGER "webhook_delivery_queued" AFTER INSERT ON "webhook_delivery"
    FOR EACH ROW EXECUTE FUNCTION "notify_id"('webhook_delivery', 'id');
