import { spawn } from 'node:child_process'
import { expect, test } from 'vitest'
import { endProcess, identify, isAlive } from './identity'

function start(script: string) {
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'ignore'] })
  return new Promise<typeof child>((resolve) => child.stdout.once('data', () => resolve(child)))
}

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
