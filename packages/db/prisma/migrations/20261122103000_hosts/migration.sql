-- Several hosts: enrolment by a one-time token, certificates, revocation, removal.

-- AlterTable
ALTER TABLE "host" ADD COLUMN "enrolledAt" TIMESTAMPTZ(3),
ADD COLUMN "revokedAt" TIMESTAMPTZ(3),
ADD COLUMN "revokedBy" TEXT,
ADD COLUMN "removedAt" TIMESTAMPTZ(3);

-- a name is free again once its host is removed
DROP INDEX "host_name_key";
CREATE UNIQUE INDEX "host_one_per_name" ON "host" ("name") WHERE "removedAt" IS NULL;

-- CreateTable
CREATE TABLE "host_enrolment" (
    "id" UUID NOT NULL,
    "hostId" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "tokenHash" TEXT NOT NULL,
    "actor" TEXT NOT NULL,
    "actorName" TEXT NOT NULL,
    "createdAt" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "expiresAt" TIMESTAMPTZ(3) NOT NULL,
    "requestedAt" TIMESTAMPTZ(3),
    "request" TEXT,
    "agentUrl" TEXT,
    "ipAddress" TEXT,
    "signedAt" TIMESTAMPTZ(3),
    "certificate" TEXT,
    "fault" JSONB,
    "withdrawnAt" TIMESTAMPTZ(3),

    CONSTRAINT "host_enrolment_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "host_certificate" (
    "fingerprint" TEXT NOT NULL,
    "hostId" UUID NOT NULL,
    "notBefore" TIMESTAMPTZ(3) NOT NULL,
    "notAfter" TIMESTAMPTZ(3) NOT NULL,
    "issuedAt" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "revokedAt" TIMESTAMPTZ(3),

    CONSTRAINT "host_certificate_pkey" PRIMARY KEY ("fingerprint")
);

-- CreateIndex
CREATE UNIQUE INDEX "host_enrolment_tokenHash_key" ON "host_enrolment"("tokenHash");

-- CreateIndex
CREATE INDEX "host_certificate_hostId_idx" ON "host_certificate"("hostId");

-- AddForeignKey
ALTER TABLE "host_certificate" ADD CONSTRAINT "host_certificate_hostId_fkey" FOREIGN KEY ("hostId") REFERENCES "host"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- a request is what takes a token; a certificate is the answer to one
ALTER TABLE "host_enrolment" ADD CONSTRAINT "host_enrolment_request_check"
    CHECK (("requestedAt" IS NOT NULL) = ("request" IS NOT NULL) AND ("request" IS NULL) = ("agentUrl" IS NULL));
ALTER TABLE "host_enrolment" ADD CONSTRAINT "host_enrolment_signed_check"
    CHECK (("signedAt" IS NOT NULL) = ("certificate" IS NOT NULL) AND ("certificate" IS NULL OR "request" IS NOT NULL));

DROP TRIGGER "host_moved" ON "host";
CREATE TRIGGER "host_moved" AFTER UPDATE ON "host" FOR EACH ROW
    WHEN ((OLD."name", OLD."agentUrl", OLD."agentVersion", OLD."fault", OLD."revokedAt", OLD."removedAt", OLD."enrolledAt")
        IS DISTINCT FROM (NEW."name", NEW."agentUrl", NEW."agentVersion", NEW."fault", NEW."revokedAt", NEW."removedAt",
            NEW."enrolledAt"))
    EXECUTE FUNCTION "notify_id"('host', 'id');
CREATE TRIGGER "host_enrolment_moved" AFTER INSERT OR UPDATE ON "host_enrolment"
    FOR EACH ROW EXECUTE FUNCTION "notify_id"('host', 'hostId');
