-- Names are bounded: they are copied into every audit row. The words of the schema (PersonName) are checked by web; this is
-- what holds for whoever writes. Names from before are shortened.
UPDATE "user"
   SET "name" = coalesce(nullif(btrim(left(btrim(regexp_replace("name", '[[:cntrl:]]', '', 'g')), 64)), ''), 'unnamed');

ALTER TABLE "user" ADD CONSTRAINT "user_name_check"
    CHECK (char_length("name") BETWEEN 1 AND 64 AND "name" = btrim("name") AND "name" !~ '[[:cntrl:]]');
