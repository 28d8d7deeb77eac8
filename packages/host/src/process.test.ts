import { spawn } from 'node:child_process'
import { expect, test } from 'vitest'
import { endProcess, identify, isAlive, isRunning, parseProcessStat, readChild, readProcess } from './process'

function start(script: string) {
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'ignore'] })
  return new Promise<typeof child>((resolve) => child.stdout.once('data', () => resolve(child)))
}

test('a process name with blanks and parentheses does not shift the fields', () => {
  const p = parseProcessStat(
    '4242 (post) gres: (x) S 17 4242 4242 0 -1 4194560 1 2 3 4 50 60 70 80 20 0 1 0 123456 1000 200 18446744073709551615',
  )
  expect(p).toEqual({
    pid: 4242,
    state: 'S',
    parent: 17,
    session: 4242,
    ticks: 110,
    childrenTicks: 150,
    startTicks: 123_456,
  })
})

test('a process is not taken for an earlier one that had its pid', async () => {
  const child = await start('console.log(1); setInterval(() => {}, 1000)')
  const identity = identify(child.pid as number)
  if (identity === null) throw new Error('the child is gone')
  expect(isAlive(identity)).toBe(true)
  expect(isAlive({ ...identity, startTicks: identity.startTicks - 1 })).toBe(false)
  expect(isAlive({ ...identity, bootId: 'an earlier boot' })).toBe(false)
  await endProcess(identity, 5_000)
  expect(isAlive(identity)).toBe(false)
})

test('who is named as a child is believed to be one only where it is', async () => {
  const child = await start('console.log(1); setInterval(() => {}, 1000)')
  const pid = child.pid as number
  expect(readChild(pid, process.pid)).toMatchObject({ pid, parent: process.pid })
  for (const [named, parent] of [
    [pid, process.ppid],
    [pid, undefined],
    [process.pid, process.pid],
    [`${pid}`, process.pid],
    [null, process.pid],
  ] as const)
    expect(readChild(named, parent)).toBeNull()
  const identity = identify(pid)
  if (identity) await endProcess(identity, 5_000)
  expect(readChild(pid, process.pid)).toBeNull()
})

test('a process that ignores the request to end is killed at the deadline', async () => {
  const child = await start("process.on('SIGTERM', () => {}); console.log(1); setInterval(() => {}, 1000)")
  const identity = identify(child.pid as number)
  if (identity === null) throw new Error('the child is gone')
  const signal = new Promise((resolve) => child.once('exit', (_, by) => resolve(by)))
  await endProcess(identity, 200)
  expect(await signal).toBe('SIGKILL')
})

test('a pid that nobody has is no process', () => {
  expect(identify(2 ** 22 + 1)).toBeNull()
})

test('one that has ended and waits to be reaped does not run', () => {
  const stat = readProcess(process.pid)
  expect(isRunning(stat)).toBe(true)
  for (const state of ['Z', 'X']) expect(isRunning(stat && { ...stat, state })).toBe(false)
})
