import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { identify } from '@floe/host/process'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Home, homeAt, makeHome } from '../installation/home'
import { currentMark, liveRecord, writeRecord } from './records'

let home: Home
beforeEach(() => {
  home = homeAt(mkdtempSync(join(tmpdir(), 'floe-records-')))
  makeHome(home)
})
afterEach(() => rmSync(home.directory, { recursive: true, force: true }))

test('a record counts only while that very process runs', () => {
  const self = identify(process.pid)
  if (self === null) throw new Error('could not read /proc')
  const record = { ...self, startedAt: 1, mark: 'x' }
  expect(liveRecord(home, 'web')).toBeNull()
  writeRecord(home, 'web', record)
  expect(liveRecord(home, 'web')).toEqual(record)
  writeRecord(home, 'web', { ...record, startTicks: record.startTicks + 1 })
  expect(liveRecord(home, 'web')).toBeNull()
  writeFileSync(join(home.run, 'web.json'), '{"pid":')
  expect(liveRecord(home, 'web')).toBeNull()
})

test('the mark changes with the build and with the configuration', () => {
  const checkout = join(home.directory, 'checkout')
  mkdirSync(join(checkout, 'apps/agent/dist'), { recursive: true })
  const write = (build: string, config: string) => {
    writeFileSync(join(checkout, 'apps/agent/dist/main.js'), build)
    writeFileSync(home.configFile, config)
    return currentMark(home, checkout, 'agent')
  }
  const first = write('a', '1')
  expect(write('b', '1')).not.toBe(first)
  expect(write('a', '2')).not.toBe(first)
  expect(write('a', '1')).toBe(first)
})
