import { describe, expect, test } from 'vitest'
import { applyChanges, formatConfiguration, parseConfiguration, quoteValue } from './managed-file'

describe('the managed file', () => {
  test('what is written is what is read, whatever the value holds', () => {
    const settings = new Map([
      ['application_name', "it's # not \\ a comment"],
      ['log_line_prefix', '%m [%p] '],
      ['shared_preload_libraries', ''],
      ['work_mem', '8MB'],
    ])
    expect(parseConfiguration(formatConfiguration(settings))).toEqual(settings)
  })

  test('a value cannot begin another line', () => {
    expect(() => quoteValue("off'\nfsync = 'off")).toThrow('line break')
  })

  test('null takes a line away and the others stay', () => {
    const before = new Map([
      ['fsync', 'on'],
      ['work_mem', '4MB'],
    ])
    const after = applyChanges(before, [
      { name: 'Work_Mem', value: null },
      { name: 'max_wal_size', value: '2GB' },
    ])
    expect([...after]).toEqual([
      ['fsync', 'on'],
      ['max_wal_size', '2GB'],
    ])
    expect(before.get('work_mem')).toBe('4MB')
  })
})
