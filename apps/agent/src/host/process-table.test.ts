import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isRunning, readProcess } from '@floe/host/process'
import { expect, test } from 'vitest'
import { endProcessesIn, ProcessTree } from './process-table'

test('a child is found among the children, and not any more when it has ended', async () => {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'])
  await once(child, 'spawn')
  const tree = new ProcessTree()
  expect(tree.childrenOf(process.pid, 0)).toContain(child.pid)
  expect(isRunning(readProcess(child.pid as number))).toBe(true)
  child.kill('SIGKILL')
  await once(child, 'exit')
  expect(tree.childrenOf(process.pid, 0)).not.toContain(child.pid)
  expect(isRunning(readProcess(child.pid as number))).toBe(false)
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
