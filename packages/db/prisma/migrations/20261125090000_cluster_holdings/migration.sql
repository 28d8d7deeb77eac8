-- What a failover is judged by: the timeline that a cluster's primary began, promotions that are not settled, the sets of
-- standbys that commits may have waited for (ClusterHoldings). Of a cluster that is there already it is unknown until its
-- primary's next reports.
ALTER TABLE "cluster" ADD COLUMN "holdings" JSONB NOT NULL DEFAULT '{}';
