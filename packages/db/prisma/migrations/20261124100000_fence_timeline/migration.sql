-- The newest timeline that an order to fence is about: whoever is on a later one was promoted since, and is left alone.
-- Orders from before have none, and none is made up for them: a person decides.
ALTER TABLE "instance" ADD COLUMN "fenceTimeline" INTEGER;
