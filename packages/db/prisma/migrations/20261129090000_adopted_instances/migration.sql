-- that an instance which was made past this console is there is told from its adoption: it is kept as long as the instance
CREATE OR REPLACE FUNCTION "prune_operations"("at_most" integer) RETURNS integer LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    removed integer;
BEGIN
    DELETE FROM "operation" WHERE "id" IN (
        SELECT o."id" FROM "operation" o
         WHERE o."endedAt" < now() - make_interval(secs =>
                 (SELECT r."keepSeconds" FROM "record_retention" r WHERE r."kind" = 'operation'))
           AND NOT ((o."kind" LIKE 'create-%' OR o."kind" = 'adopt-instance') AND o."state" = 'succeeded' AND EXISTS (
                 SELECT FROM "instance" i WHERE i."id" = o."instanceId" AND i."deletedAt" IS NULL))
           AND NOT EXISTS (SELECT FROM "operation" r WHERE r."retryOf" = o."id" AND r."endedAt" IS NULL)
         ORDER BY o."endedAt" LIMIT "at_most");
    GET DIAGNOSTICS removed = ROW_COUNT;
    RETURN removed;
END
$$;
