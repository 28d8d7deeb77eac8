-- Which version of flashback_table the engine brings, whether an installed one ($1) can be brought to it, and whether this is a
-- standby.
select a.default_version as version,
       pg_is_in_recovery() as standby,
       exists (select from pg_extension_update_paths('flashback_table') u
                where u.source = $1 and u.target = a.default_version and u.path is not null) as updatable
  from pg_available_extensions a
 where a.name = 'flashback_table'
