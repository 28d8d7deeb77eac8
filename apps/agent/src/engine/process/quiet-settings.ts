/**
 * Of a session whose statements, their parameters or what the engine says of them have values of rows: the server's log is told
 * of what ends the session, and of nothing else. Only superusers can set these, so what an owner wrote cannot undo them.
 */
export const quietSettings = {
  // errors of rows, notices of triggers, and all of the level LOG: durations, plans, waits for locks, temporary files
  log_min_messages: 'fatal',
  log_min_error_statement: 'panic',
  log_error_verbosity: 'terse',
  log_statement: 'none',
  log_duration: 'off',
  log_min_duration_statement: '-1',
  log_min_duration_sample: '-1',
  log_transaction_sample_rate: '0',
  log_parameter_max_length: '0',
  log_parameter_max_length_on_error: '0',
  'auto_explain.log_min_duration': '-1',
}
