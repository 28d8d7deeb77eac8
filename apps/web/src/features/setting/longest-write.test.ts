import { InstanceId } from '@floe/domain'
import { expect, test } from 'vitest'
import type { SettingView } from '@/server/api'
import { longestWriteWords } from './longest-write'

const setting = (
  name: string,
  value: string | null,
  shown = value,
  unit: string | null = null,
): SettingView => ({
  name,
  unit,
  type: 'integer',
  context: 'postmaster',
  category: '',
  description: '',
  detail: null,
  min: '0',
  max: '1073741823',
  choices: null,
  bootValue: null,
  impact: 'restart',
  title: null,
  meaning: null,
  warning: null,
  notable: false,
  ordered: false,
  ownOfMember: null,
  differs: false,
  tooSmallOn: [],
  values: [
    {
      instanceId: InstanceId.parse('00000000-0000-4000-8000-000000000001'),
      value,
      shown,
      resetValue: value,
      source: 'default',
      sourceFile: null,
      sourceLine: null,
      pendingRestart: false,
      pending: null,
      managedValue: null,
      fileError: null,
    },
  ],
})
const size = setting('polar_bulk_write_size', '16', '128kB', '8kB')
const engine = (buffers: string, shown: string, connections: string | null) => [
  size,
  setting('shared_buffers', buffers, shown, '8kB'),
  setting('max_connections', connections),
  setting('autovacuum_worker_slots', '16'),
  setting('max_worker_processes', '8'),
  setting('max_wal_senders', '10'),
]

test('with few connections the size is what limits a write', () => {
  expect(longestWriteWords(engine('16384', '128MB', '100'), size, '128kB')).toBeNull()
  expect(longestWriteWords(engine('16384', '128MB', '100'), size, '1MB')).toMatch(/^At most 696kB /)
})

test('many connections on a small pool shorten writes, as measured on the engine', () => {
  expect(longestWriteWords(engine('16384', '128MB', '1000'), size, '128kB')).toBe(
    'At most 64kB are written at once: shared_buffers is 128MB and max_connections 1000, and one process may use its share of the pool only.',
  )
  expect(longestWriteWords(engine('16384', '128MB', '2000'), size, '128kB')).toMatch(
    /^Single blocks are written all the same: .* max_connections 2000,/,
  )
})

test('nothing is said of single blocks, of what is no size, or of an engine that does not tell', () => {
  const small = engine('16384', '128MB', '2000')
  expect(longestWriteWords(small, size, '0')).toBeNull()
  expect(longestWriteWords(small, size, '8kB')).toBeNull()
  expect(longestWriteWords(small, size, 'much')).toBeNull()
  expect(longestWriteWords(engine('16384', '128MB', null), size, '128kB')).toBeNull()
  expect(longestWriteWords([size], size, '128kB')).toBeNull()
})
