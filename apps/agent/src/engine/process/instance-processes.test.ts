import { uptime } from 'node:os'
import { expect, test } from 'vitest'
import type { ProcessSeen } from '../../host/process-table'
import { runCommand } from '../../host/run-command'
import { instanceLayout } from '../directory/layout'
import { type Belonging, sortProcesses } from './instance-processes'

const layout = instanceLayout('/i', 'one')
const ticks = (ageS: number) => Math.round((uptime() - ageS) * 100)

const belonging = (more: Partial<Belonging> = {}): Belonging => ({
  layout,
  instancesDirectory: '/i',
  user: { name: 'floe', uid: 900, gid: 900 },
  ownUser: false,
  workedIn: '1:10',
  worksIn: '1:10',
  supervised: () => false,
  ...more,
})

/** A backend in the data directory, 100 s old, unless said otherwise. */
function seen(
  pid: number,
  more: Partial<ProcessSeen> & { parent?: number; session?: number; ageS?: number } = {},
) {
  const { parent = 1, session = pid, ageS = 100, ...rest } = more
  const stat = { pid, state: 'S', parent, session, ticks: 0, childrenTicks: 0, startTicks: ticks(ageS) }
  const found: ProcessSeen = {
    stat,
    program: 'postgres',
    command: ['postgres: one: app app [local] idle'],
    directory: layout.dataDirectory,
    directoryNumber: '1:10',
    ...rest,
  }
  return found
}
const postmaster = (pid: number, more: Parameters<typeof seen>[1] = {}) =>
  seen(pid, { command: ['/prefix/bin/postgres', '-D', layout.dataDirectory], ...more })
const elsewhere = { directory: '/', directoryNumber: '1:2' }

const pids = (found: ProcessSeen[]) => found.map((p) => p.stat.pid)
const sorted = (all: ProcessSeen[], more: Partial<Belonging> = {}) => {
  const s = sortProcesses(belonging(more), all)
  return {
    all: pids(s.all),
    engine: pids(s.engine),
    postmaster: s.postmaster?.stat.pid ?? null,
    user: pids(s.ofUser),
  }
}

test('the postmaster is the one that is nobody’s child; its logger is no reason to wait', () => {
  const logger = seen(102, { parent: 100, command: ['postgres: one: logger '] })
  expect(sorted([postmaster(100), seen(101, { parent: 100 }), logger])).toMatchObject({
    all: [100, 101, 102],
    engine: [100, 101],
    postmaster: 100,
  })
  expect(sorted([seen(101), logger])).toMatchObject({ all: [101, 102], engine: [101], postmaster: null })
})

test('one that has just been started has no postmaster.pid to miss, until it has children', () => {
  const young = postmaster(100, { ageS: 1 })
  expect(sorted([young])).toMatchObject({ all: [100], engine: [], postmaster: null })
  expect(sorted([young, seen(101, { parent: 100, ageS: 0 })])).toMatchObject({ postmaster: 100 })
})

test('a directory that was renamed counts by its number, unless it is another instance’s by now', () => {
  const away = { directory: '/elsewhere/before', directoryNumber: '1:10' }
  expect(sorted([seen(101, away)], { worksIn: '1:77' }).engine).toEqual([101])
  const taken = { directory: '/i/two/pgdata', directoryNumber: '1:10' }
  expect(sorted([seen(101, taken)], { worksIn: '1:77' }).all).toEqual([])
  expect(sorted([postmaster(100, away)], { worksIn: '1:77', workedIn: null }).postmaster).toBe(100)
  const removed = { directory: `${layout.dataDirectory} (deleted)`, directoryNumber: '1:9' }
  expect(sorted([seen(101, removed)]).engine).toEqual([101])
})

test('another instance’s processes of the same user are not its own', () => {
  const other = { directory: '/i/two/pgdata', directoryNumber: '1:20' }
  expect(sorted([seen(200, { ...other, command: ['postgres', '-D', '/i/two/pgdata'] })]).all).toEqual([])
})

test('programs of sessions are ended with it and are not its engine; without root a person’s shell is nobody’s', () => {
  const program = { program: 'sleep', command: ['sleep', '9'] }
  expect(sorted([seen(300, program)])).toMatchObject({ all: [300], engine: [] })
  const user = { name: 'me', uid: null, gid: null }
  expect(sorted([seen(300, program)], { user }).all).toEqual([])
  expect(sorted([seen(101), seen(300, { ...program, parent: 101 })], { user }).all).toEqual([101, 300])
})

test('what has its own user is its own wherever it works; a unit says so too', () => {
  const hidden = seen(101, elsewhere)
  const program = seen(300, { program: 'sh', command: ['sh'], ...elsewhere })
  expect(sorted([hidden, program])).toMatchObject({ all: [], user: [] })
  expect(sorted([hidden, program], { ownUser: true })).toMatchObject({
    all: [101],
    engine: [101],
    user: [101, 300],
  })
  expect(sorted([program], { supervised: (pid) => pid === 300 }).all).toEqual([300])
})

test('trials of settings and the agent’s own tools are not the instance’s', async () => {
  const trial = { directory: '/i/one/trial/pgdata', directoryNumber: '1:30' }
  const starting = postmaster(400, { ...elsewhere, command: ['postgres', '-D', '/i/one/trial/pgdata'] })
  expect(sorted([seen(401, trial), starting], { ownUser: true }).all).toEqual([])
  let session = 0
  const done = runCommand('/bin/sh', ['-c', 'echo $$; exec sleep 60'], {
    onOutput: (text) => {
      session = Number(text)
      expect(sorted([seen(500, { session })], { ownUser: true }).user).toEqual([])
      process.kill(session, 'SIGKILL')
    },
  })
  await done
  expect(session).toBeGreaterThan(0)
  expect(sorted([seen(500, { session })], { ownUser: true }).user).toEqual([500])
})
