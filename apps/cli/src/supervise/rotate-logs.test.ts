import {
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { forgetRunLogs, rotateLog } from './rotate-logs'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'floe-logs-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

test('a log that is too large is rotated under a process that keeps writing it, and only three old ones are kept', () => {
  const file = join(directory, 'web.log')
  const writer = openSync(file, 'a')
  for (let i = 1; i <= 6; i++) {
    writeSync(writer, `line ${i} ${'x'.repeat(100)}\n`)
    expect(rotateLog(file, 50, 3)).toBe(true)
  }
  writeSync(writer, 'now\n')
  closeSync(writer)
  expect(rotateLog(file, 50, 3)).toBe(false)
  expect(readFileSync(file, 'utf8')).toBe('now\n')
  expect(readFileSync(`${file}.1`, 'utf8')).toContain('line 6')
  expect(readFileSync(`${file}.3`, 'utf8')).toContain('line 4')
  expect(readdirSync(directory).sort()).toEqual(['web.log', 'web.log.1', 'web.log.2', 'web.log.3'])
})

test('of finished runs the newest logs are kept, whatever their verb; logs of processes are left alone', () => {
  const names = [
    'up-20260101T000000.log',
    'test-20260102T000000.log',
    'up-20260103T000000.log',
    'web.log',
    'agent.log.1',
  ]
  for (const name of names) writeFileSync(join(directory, name), '')
  forgetRunLogs(directory, 2)
  expect(readdirSync(directory).sort()).toEqual([
    'agent.log.1',
    'test-20260102T000000.log',
    'up-20260103T000000.log',
    'web.log',
  ])
})
