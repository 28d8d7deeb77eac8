/**
 * Settings by which the server runs a command of its host or loads a library: a person who may set one acts as the
 * instance's operating-system user. Reason by name. What an extension brings is known by how its name ends. Not among
 * them: files that are only read (ssl_*_file, krb_server_keyfile), places of logs and sockets (Floe reserves those),
 * and what names other servers (primary_conninfo, polar_page_repair_sources: reserved, too).
 */
const programs = {
  archive_command: 'command',
  archive_cleanup_command: 'command',
  recovery_end_command: 'command',
  restore_command: 'command',
  ssl_passphrase_command: 'command',
  'basebackup_to_shell.command': 'command',
  'plperl.on_init': 'command',
  'plperl.on_plperl_init': 'command',
  'plperl.on_plperlu_init': 'command',
  'pltcl.start_proc': 'command',
  'pltclu.start_proc': 'command',
  archive_library: 'library',
  jit_provider: 'library',
  local_preload_libraries: 'library',
  oauth_validator_libraries: 'library',
  output_plugin_libraries: 'library',
  session_preload_libraries: 'library',
  shared_preload_libraries: 'library',
  dynamic_library_path: 'library-path',
  extension_control_path: 'library-path',
} as const satisfies Record<string, ProgramSetting>

/** How a setting makes the server run something: a command, libraries by name, or where both are looked for. */
export type ProgramSetting = 'command' | 'library' | 'library-path'

/** The word for the class in audit rows. */
export const RUNS_PROGRAMS = 'runs-programs'

const ofExtension =
  /\..*(?:command|program|shell|librar(?:y|ies)|library_path|libpath|on_init|start_proc|vmoptions)$/

/** How a setting makes the server run programs or load libraries; null for one that does neither. */
export function programSetting(name: string): ProgramSetting | null {
  const key = name.toLowerCase()
  if (Object.hasOwn(programs, key)) return programs[key as keyof typeof programs]
  return ofExtension.test(key) ? 'command' : null
}

/** Those of some names that make the server run programs or load libraries, in lower case, each once. */
export function programSettingsOf(names: Iterable<string>): string[] {
  return [...new Set([...names].map((n) => n.toLowerCase()))].filter((n) => programSetting(n) !== null)
}

/** Settings of the class that the server itself knows, of one kind. */
export function programSettingNames(kind: ProgramSetting): string[] {
  return Object.entries(programs).flatMap(([name, k]) => (k === kind ? [name] : []))
}

/**
 * Settings whose value PostgreSQL shows to superusers and pg_read_all_settings only (GUC_SUPERUSER_ONLY; a test compares
 * the list with an engine).
 */
export const superuserOnlySettings: readonly string[] = [
  'config_file',
  'data_directory',
  'dynamic_library_path',
  'extension_control_path',
  'external_pid_file',
  'hba_file',
  'ident_file',
  'jit_provider',
  'krb_server_keyfile',
  'log_directory',
  'log_filename',
  'oauth_validator_libraries',
  'output_plugin_libraries',
  'polar_page_repair_sources',
  'primary_conninfo',
  'session_preload_libraries',
  'shared_preload_libraries',
  'ssl_ciphers',
  'ssl_dh_params_file',
  'ssl_groups',
  'ssl_max_protocol_version',
  'ssl_min_protocol_version',
  'ssl_passphrase_command',
  'ssl_tls13_ciphers',
  'unix_socket_directories',
]

const hidden = new Set(superuserOnlySettings)

/** Replaces a value that the caller may not see. */
export const HIDDEN_VALUE = 'hidden (operators see it)'

/** Whether a setting's value is kept from viewers: superusers only see it, or it is a command, which may hold a password. */
export function isHiddenSetting(name: string): boolean {
  const key = name.toLowerCase()
  return hidden.has(key) || programSetting(key) !== null
}

const word = /[a-z_][a-z0-9_$]*(?:\.[a-z_][a-z0-9_$]*)*/gi
/** The server’s own words for a command that failed; the command follows. */
const failedCommand = /(?:failed \w+ command was:|command ")/i

/** A sentence or a line of a log as viewers see it: after the name of a hidden setting nothing is shown. */
export function withoutHiddenValues(text: string): string {
  for (const found of text.matchAll(word)) {
    if (!isHiddenSetting(found[0])) continue
    const end = found.index + found[0].length
    const rest = text.slice(end)
    if (/^["’”]?[).,;]?$/.test(rest)) continue
    return `${text.slice(0, end)}${/^["’”]/.exec(rest)?.[0] ?? ''}: ${HIDDEN_VALUE}`
  }
  const failed = failedCommand.exec(text)
  return failed ? `${text.slice(0, failed.index + failed[0].length)} ${HIDDEN_VALUE}` : text
}
