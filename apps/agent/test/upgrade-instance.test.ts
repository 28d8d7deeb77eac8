import { cpSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { makeScratchDirectory, testEnginePrefix, waitUntil } from '@floe/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { AgentFixture, killedAt } from './agent-fixture'

const scratch = makeScratchDirectory()
/** Three builds of the engine, in prefixes of their own; `broken` passes every check and fails in the instance's directory. */
const prefixes = {
  former: join(scratch.path, 'release-former'),
  next: join(scratch.path, 'release-next'),
  broken: join(scratch.path, 'release-broken'),
  unfit: join(scratch.path, 'release-unfit'),
}
type Build = keyof typeof prefixes
let f: AgentFixture
let id: string

/** Puts a program in the engine's place that fails for command lines of this pattern. */
function failFor(prefix: string, pattern: string): void {
  const engine = join(prefix, 'bin/postgres')
  renameSync(engine, `${engine}.real`)
  writeFileSync(
    engine,
    `#!/bin/sh
case "$*" in ${pattern}) echo 'FATAL:  this build does not start' >&2; exit 1;; esac
exec "$0.real" "$@"
`,
    { mode: 0o755 },
  )
}

const config = () => join(f.agent.home.home, 'config.json')
/** As "./floe up" or a package does: the configuration names another engine, and the agent starts again. */
async function install(build: Build): Promise<void> {
  await f.agent.end('SIGTERM')
  const installation = { ...JSON.parse(readFileSync(config(), 'utf8')), enginePrefix: prefixes[build] }
  writeFileSync(config(), JSON.stringify(installation))
  await f.agent.start()
  await f.waitForState(id, 'running')
}
const nameOf = (build: Build) => basename(prefixes[build])
const upgrade = (build: Build) => ({
  kind: 'upgrade-instance' as const,
  instanceId: id,
  build: nameOf(build),
})
const engine = async () => (await f.observed(id))?.engine
const pid = async () => (await f.observed(id))?.postmasterPid as number
const rows = () => f.query(id, 'select count(*)::int as n from kept')
const registered = () =>
  JSON.parse(readFileSync(join(f.agent.home.home, 'agent/instances', `${id}.json`), 'utf8'))
const on = (build: Build, current: boolean) => ({ build: nameOf(build), running: nameOf(build), current })

beforeAll(async () => {
  for (const prefix of Object.values(prefixes))
    cpSync(testEnginePrefix(), prefix, { recursive: true, verbatimSymlinks: true })
  f = await AgentFixture.start(8, undefined, { enginePrefix: prefixes.former })
  id = await f.createRunning({ settings: { work_mem: '8MB' } })
  await f.query(id, 'create table kept as select generate_series(1, 1000) as i')
  failFor(prefixes.broken, `*"-D ${f.dataDirectory(id)}"*`)
  failFor(prefixes.unfit, '*"-D "*postgresql.conf.trial*')
})
afterAll(async () => {
  await f?.remove()
  scratch.remove()
})

describe('an instance and the installed engine', () => {
  test('the report tells the build that it runs, the installed one, and whether they are the same', async () => {
    expect(await engine()).toEqual(on('former', true))
    await install('next')
    expect(await engine()).toEqual(on('former', false))
    const { facts } = await f.read.report.read.query({ after: null })
    expect(facts.engineBuild).toBe(nameOf('next'))
  })

  test('a build that is not the installed one is refused, and so is an instance that does not run', async () => {
    const before = await pid()
    const status = await f.run({ ...upgrade('next'), build: 'release-other' })
    expect(status.fault).toMatchObject({ code: 'engine.not_installed' })
    expect(await pid()).toBe(before)
    await f.must({ kind: 'stop-instance', instanceId: id, mode: 'fast' })
    expect((await f.run(upgrade('next'))).fault).toMatchObject({ code: 'instance.not_running' })
    expect(registered().enginePrefix).toBe(prefixes.former)
    await f.must({ kind: 'start-instance', instanceId: id })
  })

  test('settings that wait for a restart are refused: whose fault a failure is must be known', async () => {
    const before = await pid()
    const shared = (value: string | null) =>
      f.must({
        kind: 'change-settings',
        instanceId: id,
        changes: [{ name: 'max_connections', value }],
      })
    await shared('90')
    const status = await f.run(upgrade('next'))
    expect(status.fault).toMatchObject({ code: 'setting.restart_pending' })
    expect(status.fault?.detail).toContain('max_connections')
    expect(await pid()).toBe(before)
    await shared(null)
  })

  test('it is moved, with its rows, and a second order does nothing', async () => {
    const { former, downMs, postmasterPid } = await f.must(upgrade('next'))
    expect(former).toBe(nameOf('former'))
    expect(downMs).toBeGreaterThan(0)
    expect(await engine()).toEqual(on('next', true))
    expect(await rows()).toEqual([{ n: 1000 }])
    expect(await f.must(upgrade('next'))).toEqual({ former: null, downMs: 0, postmasterPid })
    // it stays there, also through an ordinary restart
    await f.must({ kind: 'restart-instance', instanceId: id, mode: 'fast' })
    expect(await engine()).toEqual(on('next', true))
  })

  test('an engine that would not start with its settings is found before the instance is stopped', async () => {
    await install('unfit')
    const before = await pid()
    const status = await f.run(upgrade('unfit'))
    expect(status.fault).toMatchObject({ code: 'engine.would_not_start' })
    expect(status.fault?.detail).toContain('this build does not start')
    expect(await pid()).toBe(before)
    expect(await engine()).toEqual(on('next', false))
  })

  test('an engine that does not start: the instance runs on its former one again', async () => {
    await install('broken')
    const status = await f.run(upgrade('broken'))
    expect(status.fault).toMatchObject({ code: 'engine.not_started' })
    expect(status.fault?.detail).toContain(`It runs on build "${nameOf('next')}" again.`)
    await f.waitForState(id, 'running')
    expect(await engine()).toEqual(on('next', false))
    expect(await rows()).toEqual([{ n: 1000 }])
  })

  test('what its superuser starts in the place of its engine is not named in the report', async () => {
    // the kernel names it, but it is neither of the two that root chose
    expect(registered().enginePrefix).toBe(prefixes.next)
    await f.agent.end('SIGTERM')
    const file = join(f.agent.home.home, 'agent/instances', `${id}.json`)
    writeFileSync(file, JSON.stringify({ ...registered(), enginePrefix: prefixes.former }))
    await f.agent.start()
    await f.waitForState(id, 'running')
    expect(await engine()).toEqual({ build: nameOf('former'), running: null, current: false })
    await f.agent.end('SIGTERM')
    writeFileSync(file, JSON.stringify({ ...registered(), enginePrefix: prefixes.next }))
    await f.agent.start()
    await f.waitForState(id, 'running')
  })

  test('killed at any moment, the agent ends it right when it is back', { timeout: 240_000 }, async () => {
    const builds = ['former', 'next'] as const
    let turn = 0
    // null: as soon as it is registered with the new one, which it is not started with yet
    for (const afterMs of [...killedAt(20, 300, 800, 1_300, 1_800, 2_300, 2_800), null]) {
      const build = builds[turn++ % 2] as Build
      await install(build)
      const key = await f.begin(upgrade(build))
      if (afterMs !== null) await new Promise((resolve) => setTimeout(resolve, afterMs))
      else
        await waitUntil(
          'it is registered with the new one',
          () => registered().enginePrefix === prefixes[build],
          30_000,
          1,
        )
      await f.agent.end('SIGKILL')
      await f.agent.start()
      expect((await f.ended(key)).state).toBe('succeeded')
      await f.waitForState(id, 'running')
      expect(await engine()).toEqual(on(build, true))
      expect(await rows()).toEqual([{ n: 1000 }])
    }
  })

  test('killed while it goes back from one that does not start, it goes back and does not try again', {
    timeout: 120_000,
  }, async () => {
    const before = await engine()
    await install('broken')
    const key = await f.begin(upgrade('broken'))
    await waitUntil(
      'it is registered with its former one again',
      () => {
        const tried = f.agent.output.includes(key.operationId)
        const note = tried && noteOf(key.operationId).includes('failed')
        return note && registered().enginePrefix !== prefixes.broken
      },
      30_000,
      1,
    )
    await f.agent.end('SIGKILL')
    await f.agent.start()
    const status = await f.ended(key)
    expect(status.fault).toMatchObject({ code: 'engine.not_started' })
    expect(status.log.filter(({ text }) => text === `it starts on build ${nameOf('broken')}`)).toHaveLength(1)
    await f.waitForState(id, 'running')
    expect(await engine()).toEqual({ ...before, current: false })
    expect(await rows()).toEqual([{ n: 1000 }])
  })
})

/** What the agent has noted for a task of this operation; empty where it has not. */
function noteOf(operationId: string): string {
  try {
    return readFileSync(join(f.agent.home.home, 'agent/tasks', `${operationId}.step.1.note`), 'utf8')
  } catch {
    return ''
  }
}
