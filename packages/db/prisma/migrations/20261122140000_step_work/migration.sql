-- How many bytes of a step are done, of how many, and how long the rest takes at the measured pace; null is unknown.
-- AlterTable
ALTER TABLE "operation_step" ADD COLUMN "doneBytes" DOUBLE PRECISION,
ADD COLUMN "totalBytes" DOUBLE PRECISION,
ADD COLUMN "remainingMs" DOUBLE PRECISION;

ALTER TABLE "operation_step" ADD CONSTRAINT "operation_step_work_check"
    CHECK ("doneBytes" >= 0 AND "totalBytes" >= 0 AND "remainingMs" >= 0
        AND ("doneBytes" IS NOT NULL OR ("totalBytes" IS NULL AND "remainingMs" IS NULL)));
