import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { homeAt } from '../installation/home'
import { runLog } from './run-log'

const directory = mkdtempSync(join(tmpdir(), 'floe-run-log-'))
const home = join(directory, 'home')
afterEach(() => {
  vi.unstubAllEnvs()
  rmSync(directory, { recursive: true, force: true })
})

/** The logs of an installation, with who may read them. */
const logs = () =>
  readdirSync(join(home, 'log')).map((name) => [
    name.replace(/-.*/, ''),
    statSync(join(home, 'log', name)).mode & 0o777,
  ])

test('a log of a verb is for its owner alone', () => {
  vi.stubEnv('FLOE_LOG', undefined)
  runLog(homeAt(home), 'up')
  expect(logs()).toEqual([['up', 0o600]])
})

test('… also where the launcher opens it, because packages have to be installed before any verb', () => {
  const checkout = join(directory, 'checkout')
  const file = (name: string, text: string) => {
    mkdirSync(dirname(join(checkout, name)), { recursive: true })
    writeFileSync(join(checkout, name), text, { mode: 0o755 })
  }
  file('package-lock.json', '{}')
  file('tooling/installed.mjs', 'process.exit(1)')
  file('bin/npm', '#!/bin/sh\n[ "$1" = --version ] && exec echo 99.0.0\necho "no network"\nexit 1\n')
  copyFileSync(join(import.meta.dirname, '../../../../floe'), join(checkout, 'floe'))
  const { status, stderr } = spawnSync(join(checkout, 'floe'), ['instance', 'list'], {
    env: {
      PATH: `${join(checkout, 'bin')}:${dirname(process.execPath)}:/usr/bin:/bin`,
      FLOE_HOME: home,
      FLOE_CACHE: join(directory, 'cache'),
    },
    encoding: 'utf8',
  })
  expect(stderr).toContain('could not install the TypeScript packages')
  expect([status, logs()]).toEqual([1, [['instance', 0o600]]])
})
