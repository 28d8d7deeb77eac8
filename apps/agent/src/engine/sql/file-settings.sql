-- The lines of all configuration files about some settings, the last one first. $1: names in lower case.
select lower(name) as name, setting as value, sourcefile as "sourceFile", sourceline as "sourceLine", applied, error
  from pg_file_settings
 where lower(name) = any ($1)
 order by seqno desc
