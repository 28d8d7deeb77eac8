import type { Fault } from './fault'

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
  log_truncate_on_rotation: 'Floe limits the size of the server log.',
  log_rotation_age: 'Floe limits the size of the server log.',
  log_rotation_size: 'Floe limits the size of the server log.',
  log_timezone: 'Floe reads the times in the server log as UTC.',
  log_checkpoints: 'Floe reads checkpoints from the server log.',
  lc_messages: 'Floe reads checkpoints from the server log, in English.',
  primary_conninfo:
    'It follows from the cluster: Floe writes it when a standby is created or follows another primary.',
  primary_slot_name: 'It follows from the cluster: Floe keeps a slot for each standby.',
  synchronous_standby_names:
    'It follows from the cluster: choose the synchronous standbys on its replication page or with "./floe cluster synchronous".',
  polar_page_repair_sources:
    'It follows from the cluster: standbys are page repair sources unless you choose otherwise on its replication page or with "./floe cluster page-repair".',
  polar_page_repair_list_only: 'An instance with it never runs: recovery lists torn pages and ends.',
  ssl: 'Standbys and page repair sources use TLS only. Set ssl_cert_file and ssl_key_file for a certificate of your own (RSA or ECDSA).',
  restart_after_crash: 'Floe relies on the engine to restart its own processes.',
}

/** Why a setting cannot be chosen, in the words of every place that refuses it; undefined of one that can. */
export function reservedSettingFault(name: string): Fault | undefined {
  const detail = reservedSettings[name.toLowerCase()]
  return detail === undefined
    ? undefined
    : { code: 'setting.reserved', message: `setting "${name.toLowerCase()}" is set by Floe`, detail }
}

const settingName = /^[a-z_][a-z0-9_$]*(\.[a-z_][a-z0-9_$]*)?$/i

/**
 * What can be said of settings for an instance that does not exist yet without asking an engine, one answer for each: a
 * name that no setting can have, one that is reserved, one that is named twice. Null where nothing is known against it.
 */
export function newSettingFaults(settings: readonly { name: string }[]): (Fault | null)[] {
  const names = settings.map(({ name }) => name.trim().toLowerCase())
  return names.map((name, i) => {
    if (!settingName.test(name))
      return {
        code: 'setting.unknown',
        message: `setting "${name}" does not exist`,
        detail:
          'A name consists of letters, digits, "_" and "$"; a setting of an extension has two such parts.',
      }
    if (names.indexOf(name) !== i)
      return { code: 'setting.named_twice', message: `setting "${name}" is named twice` }
    return reservedSettingFault(name) ?? null
  })
}
