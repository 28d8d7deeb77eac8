/**
 * What an owner of a database, or a superuser, may have set for all sessions, or for those of Floe's own role, must not decide
 * what the agent's does there. Its backend looks whether the agent is still there, so that a killed one leaves none behind.
 */
export const undisturbedSettings = {
  standard_conforming_strings: 'on',
  DateStyle: 'ISO',
  TimeZone: 'UTC',
  default_transaction_read_only: 'off',
  default_transaction_deferrable: 'off',
  default_transaction_isolation: 'read\\ committed',
  default_tablespace: '',
  idle_in_transaction_session_timeout: '0',
  idle_session_timeout: '0',
  transaction_timeout: '0',
  client_connection_check_interval: '500',
}
