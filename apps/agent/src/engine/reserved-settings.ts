/**
 * Settings that Floe itself stands on and sets on the engine's command line or in files of its own. A change would cut it off from the instance
 * or blind it, so it is refused with the reason.
 */
export const reservedSettings: Readonly<Record<string, string>> = {
  port: 'Floe assigned the port and finds the instance by it.',
  unix_socket_directories: 'Floe connects through the socket directory of the installation.',
  unix_socket_permissions: 'Floe connects through the socket.',
  unix_socket_group: 'Floe connects through the socket.',
  data_directory: 'The data directory belongs to the instance for its whole life.',
  config_file: 'Floe keeps the configuration file in the data directory.',
  hba_file: 'Floe keeps pg_hba.conf in the data directory.',
  ident_file: 'Floe keeps pg_ident.conf in the data directory.',
  external_pid_file: 'Floe finds the process by postmaster.pid.',
  cluster_name: 'The cluster name is the instance’s name.',
  logging_collector: 'Floe reads checkpoints from the server log.',
  log_destination: 'Floe reads checkpoints from the server log as jsonlog.',
  log_directory: 'Floe reads checkpoints from the server log.',
  log_filename: 'Floe follows the rotation of the server log by its file names.',
  log_file_mode: 'Floe reads checkpoints from the server log.',
  log_truncate_on_rotation: 'Floe keeps the server log within bounds by itself.',
  log_rotation_age: 'Floe keeps the server log within bounds by itself.',
  log_rotation_size: 'Floe keeps the server log within bounds by itself.',
  log_timezone: 'Floe reads the times in the server log as UTC.',
  log_checkpoints: 'Floe reads checkpoints from the server log.',
  lc_messages: 'Floe reads checkpoints from the server log, in English.',
  primary_conninfo:
    'It follows from the cluster: Floe writes it when a standby is created or follows another primary.',
  primary_slot_name: 'It follows from the cluster: Floe keeps a slot for each standby.',
  synchronous_standby_names:
    'It follows from the cluster: choose the synchronous standbys on its replication page or by "./floe cluster synchronous".',
  polar_page_repair_sources:
    'It follows from the cluster: standbys give pages back unless you choose otherwise on its replication page or by "./floe cluster page-repair".',
  ssl: 'Standbys and the sources of torn pages are reached over TLS only. A certificate of your own (RSA or ECDSA) goes into ssl_cert_file and ssl_key_file.',
  restart_after_crash: 'Floe relies on the engine to restart its own processes.',
}

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
