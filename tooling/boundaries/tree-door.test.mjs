import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { startedPrograms } from './started-programs.mjs'
import { fileCalls, roundTheDoor } from './tree-door.mjs'

let root
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'floe-door-'))
})
afterEach(() => rmSync(root, { recursive: true }))

function write(file, source, folder = 'apps/agent/src') {
  const path = join(root, folder, file)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, source)
}

test('every way to the file system is seen, types and constants are none', () => {
  expect(fileCalls("import { constants, openSync, rmSync as remove, type Stats } from 'node:fs'")).toEqual([
    'openSync',
    'rmSync',
  ])
  for (const source of [
    "import * as fs from 'node:fs'",
    "import fs from 'node:fs/promises'",
    "const fs = await import('node:fs')",
    "const fs = require('fs')",
    "import { rm } from 'fs'",
    "import * as files from '@floe/host/replace-file'",
    "const { replaceFile } = await import('@floe/host/replace-file')",
    "export * from '@floe/host/regular-file'",
  ])
    expect(fileCalls(source), source).toEqual(['*'])
  // what packages/host does with a path is listed for who gives the path; what it says of processes needs none
  expect(
    fileCalls(
      "import { fault } from '@floe/domain'\nimport { readProcess } from '@floe/host/process'\n" +
        "import { type ReplaceOptions, replaceFile } from '@floe/host/replace-file'\nimport { readRegularFile } from '@floe/host/regular-file'\nimport { readSecretFile } from '@floe/host/configuration'",
    ),
  ).toEqual(['readRegularFile', 'readSecretFile', 'replaceFile'])
})

test('a call that is not in the table fails, and so does a table that says too much', () => {
  write('tasks/new-task.ts', "import { rmSync } from 'node:fs'\n")
  write('tasks/old-task.ts', "import { lstatSync } from 'node:fs'\n")
  write('tasks/pure.ts', 'export const one = 1\n')
  const calls = {
    'tasks/old-task.ts': ['outer', 'lstatSync renameSync'],
    'tasks/gone.ts': ['outer', 'rmSync'],
  }
  const { broken, files } = roundTheDoor(root, [{ folder: 'apps/agent/src', calls }])
  expect(files).toBe(3)
  expect(broken.map((b) => b.file.split('/').at(-1)).sort()).toEqual([
    'gone.ts',
    'new-task.ts',
    'old-task.ts',
  ])
})

test('a program that root starts is seen however it is started, one that runs as the instance’s user needs no permission', () => {
  const command = "import { runCommand } from '../host/run-command'\n"
  const spawned = "import { spawn, spawnSync as run, type ChildProcess } from 'node:child_process'\n"
  for (const [source, programs] of [
    [`${command}runCommand('chown', ['-R', '1', tree])`, ['chown']],
    [`${command}await runCommand(\`rm\`, [], { timeoutMs: 1, user: undefined })`, ['rm']],
    [`${command}runCommand('cp', [], options)`, ['cp']],
    [`${command}runCommand('cp', [], { user })`, []],
    [`${command}runCommand(join(prefix, 'bin', 'initdb'), [], { user: o.user, signal })`, []],
    [`${command}runCommand(join(prefix,\n  'bin'), [])`, ["(join(prefix, 'bin'))"]],
    [`${command}const later = [runCommand]`, ['*']],
    [`${command}start({ run: runCommand })`, ['*']],
    [`${spawned}run('tar', ['-x']); spawn('mv'); spawn('mv')`, ['mv', 'tar']],
    [`${spawned}promisify(spawn)('mv')`, ['*']],
    [`${spawned}const [file, ...words] = confined(user, ['postgres']); spawn(file, words)`, []],
    [`${spawned}const [file] = withoutRoot(user, ['postgres']); spawn(file)`, ['(file)']],
    ["import { runProgram } from './run-program'\nrunProgram('chmod', [])", ['chmod']],
    ["import * as programs from 'node:child_process'", ['*']],
    ["import programs from 'child_process'", ['*']],
    ["const { exec } = await import('node:child_process')", ['*']],
    ["const { exec } = require('child_process')", ['*']],
    ["export { spawn } from 'node:child_process'", ['*']],
    ["import type { ChildProcess } from 'node:child_process'\nlet child: ChildProcess", []],
    ["import { type ChildProcess } from 'node:child_process'\nconst spawn = 1; other.spawn('rm')", []],
  ])
    expect(startedPrograms(source), source).toEqual(programs)
})

test('the command line is held to its table as the agent is', () => {
  write('up/up.ts', "import { chownSync } from 'node:fs'\n", 'apps/cli/src')
  write(
    'down/down.ts',
    "import { runProgram } from '../run-program'\nrunProgram('rm', ['-rf', tree])\n",
    'apps/cli/src',
  )
  write('down/lock.ts', "import { spawn } from 'node:child_process'\nspawn('flock')\n", 'apps/cli/src')
  const programs = { 'down/lock.ts': ['system', 'flock', 'getent'], 'down/gone.ts': ['nowhere', 'rm'] }
  const folder = 'apps/cli/src'
  const problems = ({ broken }) => broken.map(({ file, problem }) => `${file} ${problem}`).sort()
  expect(problems(roundTheDoor(root, [{ folder, programs }]))).toEqual([
    'apps/cli/src/down/down.ts starts rm with its own rights; inside an instance’s tree give runCommand the user',
    'apps/cli/src/down/gone.ts is not there any more',
    'apps/cli/src/down/lock.ts does not start getent any more',
    'apps/cli/src/up/up.ts calls chownSync of the file system; inside an instance’s tree use host/tree.ts',
  ])
  const allowed = {
    folder,
    calls: { 'up/up.ts': ['outer', 'chownSync'] },
    programs: { 'down/lock.ts': ['system', 'flock'], 'down/down.ts': ['trial', 'rm'] },
  }
  expect(roundTheDoor(root, [allowed])).toEqual({ broken: [], files: 3 })
})
