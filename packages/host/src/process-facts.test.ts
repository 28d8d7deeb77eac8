import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, realpathSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'
import {
  commandOf,
  firstProcess,
  listPids,
  processDirectory,
  programFileOf,
  programOf,
  runningUids,
  runsAs,
  userOf,
  worksIn,
} from './process-facts'

const nobody = 2 ** 22 + 1

test('of this process the kernel tells what it runs, where and as whom', () => {
  const uid = process.getuid?.() as number
  expect(listPids()).toContain(process.pid)
  expect(programFileOf(process.pid)).toBe(realpathSync(process.execPath))
  expect(programOf(process.pid)).toBe(basename(realpathSync(process.execPath)))
  expect(processDirectory(process.pid)).toBe(realpathSync(process.cwd()))
  expect(userOf(process.pid)).toBe(uid)
  expect([...runningUids(process.pid)]).toContain(uid)
  expect(runsAs(process.pid, uid)).toBe(true)
  expect(runsAs(process.pid, uid + 1)).toBe(false)
})

test('which process is the first is known to everybody', () => {
  expect(firstProcess()).toBe(readFileSync('/proc/1/comm', 'utf8').trim())
})

test('of a pid that nobody has it tells nothing', () => {
  for (const tell of [processDirectory, programFileOf, programOf, userOf]) expect(tell(nobody)).toBeNull()
  expect(commandOf(nobody)).toEqual([])
  expect(runningUids(nobody)).toEqual(new Set())
  expect(worksIn(nobody, '/')).toBe(false)
})

test('a process works in its directory by whatever name, also when that was renamed', async () => {
  const above = mkdtempSync(join(tmpdir(), 'floe-host-'))
  const directory = mkdtempSync(join(above, 'd-'))
  const child = spawn('sleep', ['60'], { cwd: directory })
  try {
    await once(child, 'spawn')
    const pid = child.pid as number
    expect(commandOf(pid)).toEqual(['sleep', '60'])
    symlinkSync(directory, join(above, 'link'))
    expect(worksIn(pid, join(above, 'link'))).toBe(true)
    expect(worksIn(pid, above)).toBe(false)
    renameSync(directory, join(above, 'moved'))
    expect(worksIn(pid, join(above, 'moved'))).toBe(true)
    expect(worksIn(pid, directory)).toBe(false)
  } finally {
    child.kill('SIGKILL')
    rmSync(above, { recursive: true, force: true })
  }
})
