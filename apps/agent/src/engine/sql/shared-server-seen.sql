-- Whether sessions share backends, and which process is the dispatcher.
select (select pid from polar_stat_dispatcher) as dispatcher_pid,
       current_setting('polar_ss_port')::int as port,
       current_setting('polar_enable_shared_server')::bool as enabled,
       coalesce(current_setting('polar_ss_share_tls', true), 'off') = 'on' as shares_tls
