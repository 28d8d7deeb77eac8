-- The database that answers, in a first row of its own; then its relations, and shared ones, that have one of the file numbers
-- :files, each with its tablespace. Mapped relations, indexes, sequences and TOAST tables are rows of pg_class like all others;
-- forks and segments have their relation's number.
SELECT number, tablespace, name
FROM (SELECT 0 AS place, oid AS number, NULL::pg_catalog.oid AS tablespace, NULL::text AS name
      FROM pg_catalog.pg_database
      WHERE datname = pg_catalog.current_database()
      UNION ALL
      SELECT 1,
             pg_catalog.pg_relation_filenode(c.oid),
             CASE WHEN c.reltablespace <> 0 THEN c.reltablespace ELSE d.dattablespace END,
             c.oid::pg_catalog.regclass::text
      FROM pg_catalog.pg_class c, pg_catalog.pg_database d
      WHERE d.datname = pg_catalog.current_database()
        AND pg_catalog.pg_relation_filenode(c.oid) = ANY (:'files'::pg_catalog.oid[])) AS answer
ORDER BY place
