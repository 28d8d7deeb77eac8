-- Packages that an upgrade of a host brings before it moves instances, and their bytes until they are installed there.
-- AlterTable
ALTER TABLE "host_upgrade" ADD COLUMN "packages" JSONB,
ADD COLUMN "downgrade" BOOLEAN NOT NULL DEFAULT false,
ADD COLUMN "installed" JSONB;

-- CreateTable
CREATE TABLE "package_piece" (
    "digest" TEXT NOT NULL,
    "number" INTEGER NOT NULL,
    "bytes" BYTEA NOT NULL,
    "createdAt" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "package_piece_pkey" PRIMARY KEY ("digest","number")
);

-- bounds that hold whoever writes
ALTER TABLE "package_piece" ADD CONSTRAINT "package_piece_check"
    CHECK ("digest" ~ '^[0-9a-f]{64}$' AND "number" BETWEEN 0 AND 1023 AND octet_length("bytes") BETWEEN 1 AND 524288);
-- they are compressed already
ALTER TABLE "package_piece" ALTER COLUMN "bytes" SET STORAGE EXTERNAL;
