import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isRunning, readProcess } from '@floe/host/process'
import { waitUntil } from '@floe/host/wait'
import { afterEach, expect, test } from 'vitest'
import { endPrograms, RUN_VARIABLE } from './end-programs'

const directory = mkdtempSync(join(tmpdir(), 'floe-end-programs-'))
const roots: ChildProcess[] = []
afterEach(() => {
  for (const root of roots.splice(0)) root.kill('SIGKILL')
  rmSync(directory, { recursive: true, force: true })
})

const runs = (pid: number) => isRunning(readProcess(pid))

test('a run that ends lets its programs clean up, and kills what stays, also what has lost its parent', async () => {
  const file = (name: string) => join(directory, name)
  // one cleans up; one is deaf, with a child; one is in a session of its own, and its parent has ended
  const script = `
    (trap 'echo done > ${file('clean')}; exit' INT; echo $BASHPID > ${file('polite')}; while :; do sleep 0.05; done) &
    (trap '' INT; sleep 1000 & echo $BASHPID $! > ${file('deaf')}; wait) &
    (setsid sh -c 'echo $$ > ${file('orphan')}; exec sleep 1000' & )
    wait`
  const root = spawn('bash', ['-c', `set -m; ${script}`], {
    env: { ...process.env, [RUN_VARIABLE]: 'this one' },
    stdio: 'ignore',
  })
  const other = spawn('sleep', ['1000'], { env: { ...process.env, [RUN_VARIABLE]: 'another' } })
  roots.push(root, other)
  await once(root, 'spawn')
  const pids = await waitUntil('all of them run', () => {
    const found = ['polite', 'deaf', 'orphan'].flatMap((name) =>
      readFileSync(file(name), 'utf8').trim().split(' ').map(Number),
    )
    return found.length === 4 && found.every(runs) ? found : null
  })
  expect(await endPrograms(root.pid as number, 'this one', 500)).toBe(3)
  expect(pids.filter(runs)).toEqual([])
  expect(readFileSync(file('clean'), 'utf8')).toBe('done\n')
  expect(runs(other.pid as number)).toBe(true)
})
