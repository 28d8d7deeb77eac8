-- When this session last read the configuration files, ms since the epoch.
select extract(epoch from pg_conf_load_time())::float8 * 1000 as loaded
