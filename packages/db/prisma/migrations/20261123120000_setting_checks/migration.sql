-- What somebody wants to know before changing settings: asked by web, carried out by the controller, answered to whoever
-- asked, and dropped after an hour.
-- CreateTable
CREATE TABLE "setting_check" (
    "id" UUID NOT NULL,
    "targets" JSONB NOT NULL,
    "digest" TEXT NOT NULL,
    "actor" TEXT NOT NULL,
    "actorName" TEXT NOT NULL,
    "createdAt" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "takenUntil" TIMESTAMPTZ(3),
    "endedAt" TIMESTAMPTZ(3),
    "answers" JSONB,

    CONSTRAINT "setting_check_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "setting_check_actor_digest_idx" ON "setting_check"("actor", "digest");

-- what is still to be done is found without reading what was
CREATE INDEX "setting_check_due" ON "setting_check" ("createdAt") WHERE "endedAt" IS NULL;
ALTER TABLE "setting_check" ADD CONSTRAINT "setting_check_end_check"
    CHECK (("endedAt" IS NULL) = ("answers" IS NULL));

-- wakes a controller, and web when it is answered
CREATE TRIGGER "setting_check_asked" AFTER INSERT ON "setting_check"
    FOR EACH ROW EXECUTE FUNCTION "notify_id"('setting_check', 'id');
CREATE TRIGGER "setting_check_answered" AFTER UPDATE ON "setting_check" FOR EACH ROW
    WHEN (OLD."endedAt" IS NULL AND NEW."endedAt" IS NOT NULL)
    EXECUTE FUNCTION "notify_id"('setting_check_answered', 'id');
