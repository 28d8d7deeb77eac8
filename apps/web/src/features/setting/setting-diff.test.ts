import { InstanceId } from '@floe/domain'
import { describe, expect, test } from 'vitest'
import type { MemberSettingValue, SettingView } from '@/server/api'
import { groupSettings } from './group-settings'
import { rangeWords, sameValue, settingDiff, valueWords } from './setting-diff'
import { formatSize, nearestStop, parseSize, sizeStops } from './size-value'

const value = (more: Partial<MemberSettingValue>): MemberSettingValue => ({
  instanceId: InstanceId.parse('00000000-0000-4000-8000-000000000001'),
  value: '512',
  shown: '4MB',
  resetValue: '512',
  source: 'default',
  sourceFile: null,
  sourceLine: null,
  pendingRestart: false,
  pending: null,
  managedValue: null,
  fileError: null,
  ...more,
})
const setting = (
  more: Partial<SettingView>,
  ...values: (Partial<MemberSettingValue> | null)[]
): SettingView => ({
  name: 'polar_bulk_extend_size',
  unit: '8kB',
  type: 'integer',
  context: 'user',
  category: 'Resource Usage / I/O',
  description: 'How much a table grows at once.',
  detail: null,
  min: '0',
  max: '1024',
  choices: null,
  bootValue: '512',
  impact: 'reload',
  title: 'Bulk extend size',
  meaning: null,
  warning: null,
  values: (values.length > 0 ? values : [{}]).map((v) => v && value(v)),
  ordered: false,
  ownOfMember: null,
  differs: false,
  tooSmallOn: [],
  notable: false,
  ...more,
})
const switchSetting = setting(
  { name: 'full_page_writes', type: 'bool', unit: null, min: null, max: null },
  { shown: 'on', value: 'on' },
)

describe('sizes', () => {
  test('are read as PostgreSQL reads them', () => {
    expect(parseSize('4MB', '8kB')).toBe(4 * 1024 ** 2)
    expect(parseSize('512', '8kB')).toBe(4 * 1024 ** 2)
    expect(parseSize(' 1.5 MB ', '8kB')).toBe(1.5 * 1024 ** 2)
    expect(parseSize('0', '8kB')).toBe(0)
    for (const wrong of ['', '4mb', '4 M', 'MB', '-1', '4MB4', 'abc'])
      expect(parseSize(wrong, '8kB')).toBeNull()
    expect(parseSize('4', null)).toBeNull()
  })

  test('are written as SHOW writes them', () => {
    for (const text of ['0', '8kB', '128kB', '4MB', '1GB', '1536kB'])
      expect(formatSize(parseSize(text, '8kB') as number)).toBe(text)
  })

  test('a slider reaches from 0 to exactly the greatest value', () => {
    const stops = sizeStops('8kB', '1024')
    expect(stops[0]).toBe(0)
    expect(stops.at(-1)).toBe(8 * 1024 ** 2)
    expect(stops.map(formatSize)).toContain('128kB')
    expect(stops[nearestStop(stops, 4 * 1024 ** 2)]).toBe(4 * 1024 ** 2)
    expect(stops[nearestStop(stops, 0)]).toBe(0)
    expect(stops[nearestStop(stops, 3 * 1024 ** 2)]).not.toBe(0)
    expect(sizeStops('ms', '100')).toEqual([])
  })
})

describe('changes', () => {
  test('the same value in other words is no change', () => {
    expect(sameValue(setting({}), '4MB', '4096kB')).toBe(true)
    expect(sameValue(setting({}), '512', '4MB')).toBe(true)
    expect(sameValue(switchSetting, 'true', 'on')).toBe(true)
    expect(sameValue(setting({ unit: null }), '1.0', '1')).toBe(true)
    expect(sameValue(setting({ type: 'string', unit: null }), 'a', 'A')).toBe(false)
    expect(settingDiff([setting({})], new Map([['polar_bulk_extend_size', '4096kB']]))).toEqual([])
  })

  test('a draft becomes exactly the changes that differ', () => {
    const draft = new Map<string, string | null>([
      ['polar_bulk_extend_size', '1MB'],
      ['full_page_writes', 'on'],
      ['unheard_of', '1'],
    ])
    expect(settingDiff([setting({}), switchSetting], draft)).toEqual([
      { name: 'polar_bulk_extend_size', value: '1MB' },
    ])
  })

  test('back to the default is a change only where Floe’s file holds a value', () => {
    const draft = new Map([['polar_bulk_extend_size', null]])
    expect(settingDiff([setting({})], draft)).toEqual([])
    expect(settingDiff([setting({}, { managedValue: '1MB' })], draft)).toEqual([
      { name: 'polar_bulk_extend_size', value: null },
    ])
  })

  test('a value that waits for a restart is not asked for twice', () => {
    const waiting = setting({}, { pendingRestart: true, managedValue: '8MB' })
    expect(settingDiff([waiting], new Map([['polar_bulk_extend_size', '8MB']]))).toEqual([])
    expect(settingDiff([waiting], new Map([['polar_bulk_extend_size', '4MB']]))).toHaveLength(1)
  })

  test('across members it is a change where one of them has another value, or could not be read', () => {
    const draft = new Map([['polar_bulk_extend_size', '4MB']])
    expect(settingDiff([setting({}, {}, {})], draft)).toEqual([])
    expect(settingDiff([setting({}, {}, { shown: '1MB', value: '128' })], draft)).toHaveLength(1)
    expect(settingDiff([setting({}, {}, null)], draft)).toHaveLength(1)
    const back = new Map([['polar_bulk_extend_size', null]])
    expect(settingDiff([setting({}, {}, { managedValue: '1MB' })], back)).toHaveLength(1)
  })
})

test('ranges are told with their unit', () => {
  expect(rangeWords(setting({}))).toBe('0 … 8 MB')
  expect(rangeWords(setting({ unit: 'ms', min: '0', max: '100' }))).toBe('0 … 100 ms')
  expect(rangeWords(setting({ min: '-1' }))).toBe('-1 … 8 MB')
  expect(valueWords(setting({}), '512')).toBe('4MB')
  expect(valueWords(setting({}), null)).toBeNull()
  expect(rangeWords(switchSetting)).toBe('on | off')
  expect(rangeWords(setting({ choices: ['a', 'b'] }))).toBe('a | b')
})

test('the search finds every word in name, title, description or category, and the filters narrow it', () => {
  const all = [
    setting({}),
    switchSetting,
    setting({ name: 'work_mem', title: null, notable: true }, { source: 'file', pendingRestart: true }),
    setting({ name: 'max_connections', title: null, notable: true, ordered: true }),
  ]
  const names = (search: string, only: Partial<Parameters<typeof groupSettings>[2]> = {}) =>
    groupSettings(all, search, { changed: false, pending: false, notable: false, ...only }).flatMap(
      ([, group]) => group.map((s) => s.name),
    )
  expect(names('')).toHaveLength(4)
  expect(names('extend bulk')).toContain('polar_bulk_extend_size')
  expect(names('FULL_PAGE')).toEqual(['full_page_writes'])
  expect(names('', { changed: true })).toEqual(['work_mem'])
  expect(names('', { pending: true })).toEqual(['work_mem'])
  expect(names('', { notable: true })).toEqual(['max_connections', 'work_mem'])
})
