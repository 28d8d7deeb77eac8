-- Every setting as the instance's own binary describes it, with what pg_file_settings says of the lines that set it.
-- $1: names, or null for all. SHOW hides some values: archive_command is "(disabled)" while nothing is archived, and
-- of a connection by Unix socket those of TCP are 0; what a session began with is the value itself.
select s.name,
       case when hidden then s.reset_val else s.setting end as value,
       case when hidden then s.reset_val || coalesce(s.unit, '') else current_setting(s.name, true) end as shown,
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
 cross join lateral (select s.name in ('archive_command', 'tcp_keepalives_idle', 'tcp_keepalives_interval',
                                       'tcp_keepalives_count', 'tcp_user_timeout') as hidden) h
  left join lateral (select string_agg(distinct error, '; ') as error
                       from pg_file_settings
                      where lower(name) = lower(s.name) and error is not null and not applied
                        -- a value that waits for a restart is no error
                        and not s.pending_restart) f on true
 where $1::text[] is null or lower(s.name) = any ($1)
 order by s.name
