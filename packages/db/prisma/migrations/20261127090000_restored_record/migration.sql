-- What of this database is older than what it is about, because it was restored: all of it ("clusterId" null, written by
-- "./floe console restore") or the record of one cluster (found by what an agent reports). Until a person has decided and
-- the controller has carried that out, no operation on it is begun or goes on.
-- CreateTable
CREATE TABLE "restored_record" (
    "id" UUID NOT NULL,
    "clusterId" UUID,
    "foundAt" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "evidence" JSONB NOT NULL,
    "acceptedAs" TEXT,
    "acceptedAt" TIMESTAMPTZ(3),
    "acceptedBy" TEXT,
    "acceptedByName" TEXT,
    "settledAt" TIMESTAMPTZ(3),
    "outcome" TEXT,

    CONSTRAINT "restored_record_pkey" PRIMARY KEY ("id")
);

-- AddForeignKey
ALTER TABLE "restored_record" ADD CONSTRAINT "restored_record_clusterId_fkey" FOREIGN KEY ("clusterId")
    REFERENCES "cluster"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- one that is not settled for each cluster, and one for all
CREATE UNIQUE INDEX "restored_record_one_open" ON "restored_record"
    ((coalesce("clusterId", '00000000-0000-0000-0000-000000000000'::uuid))) WHERE "settledAt" IS NULL;
ALTER TABLE "restored_record" ADD CONSTRAINT "restored_record_accepted_check"
    CHECK ("acceptedAs" IN ('reported', 'recorded')
           AND num_nulls("acceptedAs", "acceptedAt", "acceptedBy", "acceptedByName") IN (0, 4)
           AND ("settledAt" IS NULL OR "acceptedAt" IS NOT NULL));
