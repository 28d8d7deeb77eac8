-- Whose database this is, where Floe does not run its server. "./floe up" makes this table before every other one there
-- (tools/claim-database.mjs runs this file), so that a database with tables but without it is somebody else's.
CREATE TABLE IF NOT EXISTS "installation" (
    "id" INTEGER NOT NULL DEFAULT 1,
    "installationId" UUID NOT NULL,
    "claimedAt" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "installation_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "installation_id_check" CHECK ("id" = 1)
);
