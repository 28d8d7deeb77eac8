-- How clients on other hosts come in: what pg_hba.conf and its includes say, and who is here without TLS.
select current_setting('ssl') = 'on' as tls,
       current_setting('listen_addresses') as listens,
       (select coalesce(json_agg(json_build_object('type', type, 'database', database, 'userName', user_name, 'address', address,
                                          'netmask', netmask, 'authMethod', auth_method, 'error', error)
                        order by rule_number nulls last), '[]')
          from pg_hba_file_rules) as rules,
       (select count(*)::int
          from pg_stat_activity a
          join pg_stat_ssl s using (pid)
         where not s.ssl and a.backend_type in ('client backend', 'walsender')
           and not (a.client_addr <<= '127.0.0.0/8' or a.client_addr <<= '::1/128')) as sessions
