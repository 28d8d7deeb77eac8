-- What does not change while this postmaster lives.
select current_setting('server_version') as version,
       current_setting('data_checksums') as checksums,
       (select system_identifier::text from pg_control_system()) as system_identifier,
       (select timeline_id from pg_control_checkpoint()) as timeline
