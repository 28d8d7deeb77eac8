import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Durations } from './durations'
import { clock, estimateLeft, Progress } from './progress'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'floe-progress-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

test('the estimate is what the step may still take and all that follow, and never below nothing', () => {
  expect(estimateLeft(100, 40, [30, 5])).toBe(95)
  expect(estimateLeft(100, 140, [30, 5])).toBe(35)
  expect(estimateLeft(0, 0, [])).toBe(0)
  expect(clock(65)).toBe('1:05')
  expect(clock(-3)).toBe('0:00')
})

test('what a step took is what the next run expects of it, and one quick run does not make it forget', () => {
  const durations = new Durations(directory)
  expect(durations.expected('engine', 200)).toBe(200)
  durations.remember('engine', 91.4)
  durations.remember('console-build', 30)
  const later = new Durations(directory)
  expect(later.expected('engine', 200)).toBe(91)
  expect(later.expected('console-build', 45)).toBe(30)
  expect(readFileSync(join(directory, 'durations'), 'utf8')).toBe('engine 91\nconsole-build 30\n')
  later.remember('engine', 1)
  expect(new Durations(directory).expected('engine', 200)).toBe(46)
})

test('without a terminal each long step is one line with the time so far and an estimate; everything is in the log', async () => {
  const out = new PassThrough()
  const logFile = join(directory, 'up.log')
  const progress = new Progress({
    out: out as unknown as NodeJS.WriteStream,
    logFile,
    durations: new Durations(directory),
    startedAt: Date.now() - 61_000,
  })
  await progress.run([
    { name: 'one', title: 'engine', seconds: 90, run: async (report) => report.now('compile') },
    {
      name: 'two',
      title: 'control database',
      seconds: 30,
      run: async (report) => report.log('initdb says something'),
    },
  ])
  const text = String(out.read())
  expect(text).toContain('floe: [1/2] engine  1:01, about 2:00 left\n')
  expect(text).toContain('floe: [2/2] control database  1:01, about 0:30 left\n')
  const log = readFileSync(logFile, 'utf8')
  expect(log).toContain('compile')
  expect(log).toContain('initdb says something')
})

test('a step that fails ends the run with its own error', async () => {
  const progress = new Progress({
    out: new PassThrough() as unknown as NodeJS.WriteStream,
    logFile: join(directory, 'log'),
    durations: new Durations(directory),
    startedAt: Date.now(),
  })
  const later: string[] = []
  await expect(
    progress.run([
      { name: 'a', title: 'a', seconds: 0, run: () => Promise.reject(new Error('no space')) },
      { name: 'b', title: 'b', seconds: 0, run: async () => void later.push('b') },
    ]),
  ).rejects.toThrow('no space')
  expect(later).toEqual([])
  expect(new Durations(directory).expected('a', 7)).toBe(7)
})
