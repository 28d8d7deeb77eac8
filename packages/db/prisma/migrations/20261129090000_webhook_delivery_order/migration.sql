-- Two messages of one millisecond were told in any order: the closing of an incident could overtake its opening. Now each has
-- the moment at which it was written, in microseconds.
ALTER TABLE "webhook_delivery" ALTER COLUMN "createdAt" SET DATA TYPE TIMESTAMPTZ(6);
ALTER TABLE "webhook_delivery" ALTER COLUMN "createdAt" SET DEFAULT clock_timestamp();
