import { expect, test } from 'vitest'
import {
  driftOf,
  type FileTexts,
  isSealed,
  seal,
  settingLinesOf,
  valuesOf,
  withoutLines,
} from './tracked-files'

const texts = (more: Partial<FileTexts> = {}): FileTexts => ({
  'postgresql.conf': "max_connections = 100\ninclude 'floe.conf'\n",
  'floe.conf': "work_mem = '8MB'\n",
  'postgresql.auto.conf': '',
  ...more,
})

test('lines are read as PostgreSQL reads them', () => {
  const text = `# a comment
work_mem=8MB
  Log_Line_Prefix = 'it''s # no comment'   # but this is
search_path '"$user", public'
include 'other.conf'
port 5432
port = 5433
fsync =
`
  expect(settingLinesOf(text)).toEqual([
    { name: 'work_mem', value: '8MB', line: 2 },
    { name: 'log_line_prefix', value: "it's # no comment", line: 3 },
    { name: 'search_path', value: '"$user", public', line: 4 },
    { name: 'port', value: '5432', line: 6 },
    { name: 'port', value: '5433', line: 7 },
    { name: 'fsync', value: '', line: 8 },
  ])
  expect(valuesOf(text).get('port')).toBe('5433')
})

test('an edit by hand breaks the seal, whatever it is', () => {
  const text = seal("work_mem = '8MB'\n")
  expect(isSealed(text)).toBe(true)
  expect(isSealed(text.replace('8MB', '9MB'))).toBe(false)
  expect(isSealed(`${text}fsync = off\n`)).toBe(false)
  expect(isSealed("work_mem = '8MB'\n")).toBe(false)
  expect(isSealed('')).toBe(false)
})

test('drift is what is set otherwise, with file and line; comments and the place in a cluster are none', () => {
  expect(
    driftOf(
      texts(),
      texts({ 'postgresql.conf': "# mine\nmax_connections = 100 # all\ninclude 'floe.conf'" }),
    ),
  ).toEqual([])
  expect(driftOf(texts(), texts({ 'postgresql.auto.conf': "primary_conninfo = 'host=x'\n" }))).toEqual([])
  expect(
    driftOf(
      texts(),
      texts({
        'postgresql.conf': "max_connections = 50\ninclude 'floe.conf'\n",
        'floe.conf': '',
        'postgresql.auto.conf': "# do not edit\nwork_mem = '77MB'\n",
      }),
    ),
  ).toEqual([
    { name: 'max_connections', file: 'postgresql.conf', line: 1, was: '100', is: '50' },
    { name: 'work_mem', file: 'floe.conf', line: null, was: '8MB', is: null },
    { name: 'work_mem', file: 'postgresql.auto.conf', line: 2, was: null, is: '77MB' },
  ])
})

test('lines are taken out by name and the rest stays', () => {
  expect(withoutLines("# a\nwork_mem = '1MB'\nfsync = on\nWORK_MEM = 2MB\n", new Set(['work_mem']))).toBe(
    '# a\nfsync = on\n',
  )
})
