import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { findPostmaster, prefixOf, stopPostmaster } from './postmaster'

let directory: string
let pgdata: string
const children: ChildProcess[] = []

beforeEach(() => {
  directory = realpathSync(mkdtempSync(join(tmpdir(), 'floe-postmaster-')))
  pgdata = join(directory, 'pgdata')
  mkdirSync(pgdata)
  mkdirSync(join(directory, 'bin'))
  copyFileSync('/bin/sleep', join(directory, 'bin/postgres'))
})
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
  rmSync(directory, { recursive: true, force: true })
})

/** A process that looks like a server to who looks at its program and its working directory. */
async function start(
  cwd: string,
  as: { uid?: number; gid?: number } = {},
  file = 'postgres',
): Promise<number> {
  if (file !== 'postgres') copyFileSync('/bin/sleep', join(directory, 'bin', file))
  const child = spawn(join(directory, 'bin', file), ['60'], { cwd, ...as, stdio: 'ignore' })
  children.push(child)
  await new Promise((resolve, reject) => child.once('spawn', resolve).once('error', reject))
  return child.pid as number
}

test('a server is found by where it works, whatever stands in its postmaster.pid', async () => {
  expect(findPostmaster(pgdata)).toBeNull()
  const pid = await start(pgdata)
  writeFileSync(join(pgdata, 'postmaster.pid'), `${process.pid}\n${pgdata}\n`)
  expect(findPostmaster(pgdata)?.pid).toBe(pid)
  rmSync(join(pgdata, 'postmaster.pid'))
  execFileSync('mkfifo', [join(pgdata, 'postmaster.pid')])
  const found = findPostmaster(pgdata)
  expect(found?.pid).toBe(pid)
  expect(found && prefixOf(found)).toBe(directory)
  expect(found && (await stopPostmaster(found, 10_000))).toBe(true)
  expect(findPostmaster(pgdata)).toBeNull()
})

test('a pid that the file names is nobody’s server unless it works there as an engine', async () => {
  writeFileSync(join(pgdata, 'postmaster.pid'), `${await start('/')}\n${pgdata}\n`)
  expect(findPostmaster(pgdata)).toBeNull()
  await start(pgdata, {}, 'something-else')
  expect(findPostmaster(pgdata)).toBeNull()
})

test.runIf(process.getuid?.() === 0)('nor one of another user', async () => {
  execFileSync('chmod', ['755', directory])
  await start(pgdata, { uid: 65_534, gid: 65_534 })
  expect(findPostmaster(pgdata)).toBeNull()
  execFileSync('chown', ['65534:65534', pgdata])
  expect(findPostmaster(pgdata)?.uid).toBe(65_534)
})
