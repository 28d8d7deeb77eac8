/** What the engine is started with; on the command line, so that no file can take it away. */
export function commandLineSettings(
  instance: { name: string; port: number },
  socketDirectory: string,
  logDirectory: string,
) {
  return {
    port: String(instance.port),
    unix_socket_directories: socketDirectory,
    cluster_name: instance.name,
    logging_collector: 'on',
    log_destination: 'stderr,jsonlog',
    log_directory: logDirectory,
    log_filename: 'engine-%Y-%m-%dT%H-%M-%S.log',
    log_rotation_age: '1d',
    log_rotation_size: '32MB',
    log_truncate_on_rotation: 'off',
    log_timezone: 'UTC',
    log_checkpoints: 'on',
    lc_messages: 'C',
  }
}
