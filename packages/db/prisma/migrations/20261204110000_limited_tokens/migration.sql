-- API tokens that people make for programs: with a role below the owner's, and an end. Those of the installation itself, and
-- of people whole, have neither.

ALTER TABLE "api_token"
    ADD COLUMN "role" TEXT CONSTRAINT "api_token_role" CHECK ("role" IN ('viewer', 'operator', 'admin')),
    ADD COLUMN "expiresAt" TIMESTAMPTZ(3),
    ADD COLUMN "madeByName" TEXT,
    ADD CONSTRAINT "api_token_limited" CHECK (("role" IS NULL) = ("expiresAt" IS NULL) AND ("role" IS NULL) = ("madeByName" IS NULL));

-- web makes limited ones only, and none that outlives a year
CREATE FUNCTION "make_api_token"("token_id" uuid, "token_name" text, "token_hash" text, "user_id" text, "token_role" text,
                                 "expires_in" interval, "made_by_name" text) RETURNS timestamptz
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    ends timestamptz(3) := now() + "expires_in";
BEGIN
    IF "token_role" IS NULL OR "made_by_name" IS NULL OR "expires_in" IS NULL
        OR "expires_in" <= interval '0' OR "expires_in" > interval '366 days' THEN
        RAISE EXCEPTION 'a token has a role, and an end within a year' USING ERRCODE = 'check_violation';
    END IF;
    INSERT INTO "api_token" ("id", "name", "tokenHash", "userId", "role", "expiresAt", "madeByName")
    VALUES ("token_id", "token_name", "token_hash", "user_id", "token_role", ends, "made_by_name");
    RETURN ends;
END
$$;

-- for good: a token that was revoked stays so
CREATE FUNCTION "revoke_api_token"("token_id" uuid) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    UPDATE "api_token" SET "revokedAt" = now()
     WHERE "id" = "token_id" AND "role" IS NOT NULL AND "revokedAt" IS NULL;
    RETURN FOUND;
END
$$;
