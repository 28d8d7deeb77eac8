-- Who answers: its data directory, and whether it is a standby.
SELECT pg_catalog.current_setting('data_directory'), pg_catalog.pg_is_in_recovery()
