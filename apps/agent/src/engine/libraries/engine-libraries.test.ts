import type { FaultError } from '@floe/domain'
import { expect, test } from 'vitest'
import { refuseForeignLibraries } from './engine-libraries'

const prefix = '/var/cache/floe/engine/release-1'
const outcome = (name: string, value: string) => {
  try {
    refuseForeignLibraries(prefix, name, value)
    return 'taken'
  } catch (error) {
    return (error as FaultError).fault.code
  }
}

test('libraries of the engine are taken, in every way they can be written', () => {
  for (const value of [
    'auto_explain',
    'auto_explain, "pg_stat_statements"',
    '$libdir/auto_explain',
    '$libdir/plugins/x',
    '',
  ])
    expect([value, outcome('shared_preload_libraries', value)]).toEqual([value, 'taken'])
  for (const value of ['$libdir', `$libdir:${prefix}/lib/postgresql`, '$libdir/plugins'])
    expect([value, outcome('dynamic_library_path', value)]).toEqual([value, 'taken'])
  expect(outcome('extension_control_path', '$system')).toBe('taken')
  expect(outcome('jit_provider', 'llvmjit')).toBe('taken')
})

test('what lies elsewhere is refused, however it is written', () => {
  for (const value of [
    '/tmp/evil.so',
    'auto_explain, /tmp/evil',
    '"/tmp/evil"',
    '../../../../tmp/evil',
    '$libdir/../../../tmp/evil',
    '$libdir/plugins/../../../../../tmp/evil',
    './evil',
    'a/b',
    '..',
    'evil;x',
  ])
    for (const name of [
      'Shared_Preload_Libraries',
      'jit_provider',
      'local_preload_libraries',
      'archive_library',
    ])
      expect([name, value, outcome(name, value)]).toEqual([name, value, 'setting.library_outside'])
  for (const value of ['/tmp', '$libdir:/tmp', '$libdir/../../../tmp', 'tmp', `${prefix}-evil/lib`])
    expect([value, outcome('dynamic_library_path', value)]).toEqual([value, 'setting.library_outside'])
})

test('settings of other kinds are none of its business', () => {
  expect(outcome('archive_command', 'cp %p /tmp/%f')).toBe('taken')
  expect(outcome('ssl_cert_file', '/etc/ssl/x.pem')).toBe('taken')
})
