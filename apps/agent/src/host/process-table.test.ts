import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { endProcessesIn, isAlive, ProcessTree, parseProcessStat, readProcess } from './process-table'

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

test('a child is found among the children, and not any more when it has ended', async () => {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'])
  await once(child, 'spawn')
  const tree = new ProcessTree()
  expect(tree.childrenOf(process.pid, 0)).toContain(child.pid)
  expect(isAlive(readProcess(child.pid as number))).toBe(true)
  child.kill('SIGKILL')
  await once(child, 'exit')
  expect(tree.childrenOf(process.pid, 0)).not.toContain(child.pid)
  expect(isAlive(readProcess(child.pid as number))).toBe(false)
})

test('processes left in a directory are ended, and only those', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'floe-left-'))
  const left = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { cwd: directory })
  const other = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { cwd: '/' })
  await Promise.all([once(left, 'spawn'), once(other, 'spawn')])
  const gone = once(left, 'exit')
  expect(endProcessesIn(directory)).toBe(1)
  await gone
  expect(other.exitCode).toBeNull()
  other.kill('SIGKILL')
  rmSync(directory, { recursive: true })
})
