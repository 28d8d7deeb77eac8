import { describe, expect, test } from 'vitest'
import {
  HIDDEN_VALUE,
  isHiddenSetting,
  programSetting,
  programSettingsOf,
  withoutHiddenValues,
} from './setting-class'

describe('settings that run programs', () => {
  test('commands, libraries and where they are looked for, in any case', () => {
    expect(programSetting('Archive_Command')).toBe('command')
    expect(programSetting('ssl_passphrase_command')).toBe('command')
    expect(programSetting('shared_preload_libraries')).toBe('library')
    expect(programSetting('dynamic_library_path')).toBe('library-path')
  })

  test('those of extensions by the end of their names', () => {
    for (const name of [
      'plperl.on_init',
      'basebackup_to_shell.command',
      'pljava.vmoptions',
      'x.restore_command',
    ])
      expect([name, programSetting(name)]).toEqual([name, 'command'])
  })

  test('what is like work_mem is not among them', () => {
    for (const name of [
      'work_mem',
      'archive_mode',
      'archive_timeout',
      'log_directory',
      'toString',
      'auto_explain.log_format',
    ])
      expect([name, programSetting(name)]).toEqual([name, null])
    expect(programSettingsOf(['work_mem', 'JIT_provider', 'jit_provider'])).toEqual(['jit_provider'])
  })
})

describe('what viewers are not told', () => {
  test('commands are hidden although PostgreSQL shows them', () => {
    expect(isHiddenSetting('archive_command')).toBe(true)
    expect(isHiddenSetting('work_mem')).toBe(false)
  })

  test('a line ends at the name of such a setting', () => {
    expect(withoutHiddenValues('archive_command: (disabled) → curl -u me:secret')).toBe(
      `archive_command: ${HIDDEN_VALUE}`,
    )
    expect(withoutHiddenValues('setting "restore_command" does not accept the value "secret"')).toBe(
      `setting "restore_command": ${HIDDEN_VALUE}`,
    )
    expect(withoutHiddenValues('The failed archive command was: scp secret')).not.toContain('secret')
  })

  test('other lines stay as they are', () => {
    for (const line of ['work_mem: 4MB → 8MB', 'wrote 2 settings', 'setting "ssl_ciphers"', 'port 6500'])
      expect(withoutHiddenValues(line)).toBe(line)
  })
})
