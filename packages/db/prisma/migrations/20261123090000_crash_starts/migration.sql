-- Each start after a crash, also one in which page repair looked at nothing (policy "none"): how long it took.
ALTER TABLE "recovery_record" ADD COLUMN "startBeganAt" TIMESTAMPTZ(3);
ALTER TABLE "recovery_record" ADD COLUMN "startReadyAt" TIMESTAMPTZ(3);
