-- Whether the primary of a cluster, its last copy, may be deleted. Set by a person.

ALTER TABLE "cluster" ADD COLUMN "deletionProtected" BOOLEAN NOT NULL DEFAULT false;
