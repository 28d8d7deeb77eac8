-- Every setting as the instance's own binary describes it, with what pg_file_settings says of the lines that set it.
-- $1: names, or null for all.
select s.name,
       s.setting as value,
       current_setting(s.name, true) as shown,
       s.unit,
       s.vartype as type,
       s.context,
       s.category,
       s.short_desc as description,
       s.extra_desc as detail,
       s.min_val as min,
       s.max_val as max,
       s.enumvals as choices,
       s.boot_val as "bootValue",
       s.reset_val as "resetValue",
       s.source,
       s.sourcefile as "sourceFile",
       s.sourceline as "sourceLine",
       s.pending_restart as "pendingRestart",
       f.error as "fileError"
  from pg_settings s
  left join lateral (select string_agg(distinct error, '; ') as error
                       from pg_file_settings
                      where lower(name) = lower(s.name) and error is not null and not applied
                        -- a value that waits for a restart is no error
                        and not s.pending_restart) f on true
 where $1::text[] is null or lower(s.name) = any ($1)
 order by s.name
