import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { InstanceLayout } from '../directory/layout'
import { lastWords, whyItEnded } from './server-log'

let directory: string
let layout: InstanceLayout
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'floe-server-log-'))
  mkdirSync(join(directory, 'log'))
  layout = {
    logDirectory: join(directory, 'log'),
    startLog: join(directory, 'start.log'),
  } as InstanceLayout
})
afterEach(() => rmSync(directory, { recursive: true }))

const now = Date.now()
const at = (agoMs: number) => new Date(now - agoMs).toISOString().replace('T', ' ').replace('Z', ' UTC')
const entry = (agoMs: number, backend_type: string, error_severity: string, message: string) => ({
  timestamp: at(agoMs),
  backend_type,
  error_severity,
  message,
})
const said = (...entries: object[]) =>
  writeFileSync(
    join(layout.logDirectory, 'engine-1.json'),
    `${entries.map((e) => JSON.stringify(e)).join('\n')}\n`,
  )
const why = (more: Partial<Parameters<typeof whyItEnded>[1]> = {}, room = 2 ** 40) =>
  whyItEnded(layout, { orderedStartAt: now - 3_600_000, aliveAt: now - 500, pid: null, ...more }, () => room)

const silent = expect.stringMatching(/^it ended without a word in its log: killed from outside/)

test('what a standby said of its primary before it was promoted is not why it was killed', () => {
  const walreceiver =
    'could not send end-of-streaming message to primary: the database system is shutting down'
  said(
    entry(61_000, 'walreceiver', 'FATAL', walreceiver),
    entry(60_000, 'startup', 'LOG', 'received promote request'),
    entry(59_000, 'startup', 'LOG', 'selected new timeline ID: 2'),
    entry(3_000, 'checkpointer', 'LOG', 'checkpoint starting: time'),
  )
  expect(why()).toEqual(silent)
  // nor where it was killed within seconds of its promotion
  said(
    entry(3_000, 'walreceiver', 'FATAL', walreceiver),
    entry(2_900, 'startup', 'FATAL', 'said before its promotion'),
    entry(2_000, 'startup', 'LOG', 'received promote request'),
  )
  expect(why()).toEqual(silent)
})

test('only what ends a server counts, and only when it was said shortly before its end', () => {
  said(
    entry(1_000, 'walreceiver', 'FATAL', 'could not connect to the primary server'),
    entry(900, 'client backend', 'FATAL', 'password authentication failed'),
    entry(800, 'page repair session', 'FATAL', 'terminating background worker'),
  )
  expect(why()).toEqual(silent)
  said(
    entry(11_000, 'startup', 'FATAL', 'an older end'),
    entry(700, 'startup', 'FATAL', 'could not open file "pg_wal/00000001"'),
    entry(600, 'checkpointer', 'PANIC', 'could not write to file'),
  )
  expect(why()).toBe('could not open file "pg_wal/00000001"\ncould not write to file')
})

test('one whose disk is full was not killed from outside, whether its last words had room or not', () => {
  said(entry(900, 'checkpointer', 'LOG', 'checkpoint starting: time'))
  expect(why({}, 0)).toBe(
    'it ended without a word in its log, and its disk is full: 0 B are left, less than a WAL segment',
  )
  const complaint = 'could not write to file "pg_wal/xlogtemp.7": No space left on device'
  said(
    entry(900, 'walwriter', 'ERROR', complaint),
    entry(800, 'client backend', 'ERROR', 'could not extend file "base/5/1": No space left on device'),
  )
  expect(why({}, 0)).toBe(complaint)
  // it was made room since, and what a client met ends no server
  expect(why()).toBe(complaint)
  said(entry(800, 'client backend', 'ERROR', 'could not extend file "base/5/1": No space left on device'))
  expect(why()).toEqual(silent)
})

test('an agent that comes later judges by the last entry, not by its own clock', () => {
  said(
    entry(7_200_000, 'startup', 'FATAL', 'an older end'),
    entry(3_600_000, 'checkpointer', 'PANIC', 'could not fsync file'),
    entry(3_599_000, 'postmaster', 'LOG', 'terminating any other active server processes'),
  )
  expect(why({ orderedStartAt: 0, aliveAt: 0 })).toBe('could not fsync file')
})

test('a start that failed is told by what it said before it had a log, and by nothing from the start before', () => {
  writeFileSync(layout.startLog, 'LOG:  starting\nFATAL:  could not create lock file\nHINT:  Free space.\n')
  expect(why({ orderedStartAt: now - 2_000, aliveAt: now - 60_000 })).toBe(
    'could not create lock file Free space.',
  )
  utimesSync(layout.startLog, (now - 60_000) / 1_000, (now - 60_000) / 1_000)
  expect(lastWords(layout, now - 2_000)).toEqual([])
})
