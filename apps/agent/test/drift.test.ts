import {
  appendFileSync,
  copyFileSync,
  cpSync,
  existsSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { giveTo, makeScratchDirectory, testEnginePrefix, waitUntil } from '@floe/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { AgentFixture } from './agent-fixture'

const scratch = makeScratchDirectory()
const prefix = join(scratch.path, 'engine')
let f: AgentFixture
let id: string
beforeAll(async () => {
  // a copy of the engine, so that a library of it can go away
  cpSync(testEnginePrefix(), prefix, { recursive: true, verbatimSymlinks: true })
  f = await AgentFixture.start(8, undefined, { enginePrefix: prefix })
  id = await f.createRunning({ settings: { work_mem: '8MB' } })
})
afterAll(async () => {
  await f?.remove()
  scratch.remove()
})

const path = (file: string) => `${f.dataDirectory(id)}/${file}`
const read = (file: string) => readFileSync(path(file), 'utf8')
const drift = async () =>
  ((await f.observed(id))?.settingDrift ?? []).map((d) => [d.name, d.file, d.was, d.is])
const noDrift = () => waitUntil('there is no drift', async () => (await drift()).length === 0)
const someDrift = (count: number) =>
  waitUntil('the drift is seen', async () => {
    const seen = await drift()
    return seen.length === count ? seen : null
  })
const shown = async (name: string) =>
  (await f.query<{ v: string }>(id, `select current_setting('${name}') as v`))[0]?.v
const resolve = (how: 'adopt' | 'revert') => f.run({ kind: 'resolve-drift', instanceId: id, how })
const change = (name: string, value: string | null) =>
  f.run({ kind: 'change-settings', instanceId: id, changes: [{ name, value }] })

describe('what is changed past Floe', () => {
  test('a new instance has no drift, and a change through Floe makes none', async () => {
    await noDrift()
    expect((await change('work_mem', '9MB')).result?.managed).toMatchObject({ work_mem: '9MB' })
    expect(await drift()).toEqual([])
  })

  test('by ALTER SYSTEM is seen, and adopted into the managed file, where it can be changed again', async () => {
    await f.query(id, "alter system set maintenance_work_mem = '77MB'")
    await f.query(id, 'select pg_reload_conf()')
    expect(await someDrift(1)).toEqual([['maintenance_work_mem', 'postgresql.auto.conf', null, '77MB']])
    const done = await resolve('adopt')
    expect(done.result?.confirmed).toEqual([
      { name: 'maintenance_work_mem', oldValue: null, newValue: '77MB', pendingRestart: false },
    ])
    expect(read('floe.conf')).toContain("maintenance_work_mem = '77MB'")
    expect(read('postgresql.auto.conf')).not.toContain('maintenance_work_mem')
    expect(await drift()).toEqual([])
    expect((await change('maintenance_work_mem', '78MB')).state).toBe('succeeded')
    expect(await shown('maintenance_work_mem')).toBe('78MB')
  })

  test('by ALTER SYSTEM is reverted: what others wrote into the same file stays', async () => {
    await f.query(id, "alter system set primary_slot_name = 'one'")
    await f.query(id, 'alter system set vacuum_cost_limit = 777')
    await f.query(id, 'select pg_reload_conf()')
    expect(await someDrift(1)).toEqual([['vacuum_cost_limit', 'postgresql.auto.conf', null, '777']])
    expect((await resolve('revert')).result?.confirmed).toMatchObject([
      { name: 'vacuum_cost_limit', oldValue: '777', newValue: '200' },
    ])
    expect(read('postgresql.auto.conf')).toContain("primary_slot_name = 'one'")
    expect(await shown('vacuum_cost_limit')).toBe('200')
    await noDrift()
  })

  test('in floe.conf and postgresql.conf by an editor is seen by line, and reverted to the letter', async () => {
    const before = [read('floe.conf'), read('postgresql.conf')]
    writeFileSync(path('floe.conf'), `${before[0]?.replace("'9MB'", "'10MB'")}effective_cache_size = 1GB\n`)
    appendFileSync(path('postgresql.conf'), '# mine\nrandom_page_cost = 1.5\n')
    expect(await someDrift(3)).toEqual([
      ['random_page_cost', 'postgresql.conf', null, '1.5'],
      ['effective_cache_size', 'floe.conf', null, '1GB'],
      ['work_mem', 'floe.conf', '9MB', '10MB'],
    ])
    const [first] = (await f.observed(id))?.settingDrift ?? []
    expect(read('postgresql.conf').split('\n')[(first?.line ?? 0) - 1]).toBe('random_page_cost = 1.5')
    expect((await resolve('revert')).state).toBe('succeeded')
    expect([read('floe.conf'), read('postgresql.conf')]).toEqual(before)
    expect(await shown('work_mem')).toBe('9MB')
  })

  test('in floe.conf by an editor is adopted, and survives the next change through Floe', async () => {
    appendFileSync(path('floe.conf'), 'effective_cache_size = 1GB\n')
    await someDrift(1)
    expect((await resolve('adopt')).state).toBe('succeeded')
    expect(await shown('effective_cache_size')).toBe('1GB')
    await change('work_mem', '11MB')
    expect(await shown('effective_cache_size')).toBe('1GB')
    await noDrift()
  })

  test('in floe.conf by an editor is taken over by the next change, which says so', async () => {
    appendFileSync(path('floe.conf'), 'seq_page_cost = 1.25\n')
    await someDrift(1)
    const done = await change('work_mem', '12MB')
    expect(done.log.map((l) => l.text)).toContain(
      'taking over what was edited in floe.conf by hand: seq_page_cost',
    )
    expect(await shown('seq_page_cost')).toBe('1.25')
    await change('work_mem', '11MB')
    await noDrift()
  })

  test('is remembered over a restart of the agent', async () => {
    await f.agent.end('SIGKILL')
    appendFileSync(path('floe.conf'), 'cpu_tuple_cost = 0.5\n')
    await f.agent.start()
    expect(await someDrift(1)).toEqual([['cpu_tuple_cost', 'floe.conf', null, '0.5']])
    await resolve('revert')
  })
})

describe('a restart that fails because of a setting', () => {
  test('made through Floe is rolled back by itself and says which line it was', async () => {
    // a library that was there when the change was checked, and is not when the restart comes
    const library = join(prefix, 'lib/postgresql/late.so')
    copyFileSync(join(prefix, 'lib/postgresql/auto_explain.so'), library)
    const done = await change('shared_preload_libraries', 'late')
    expect(done.fault).toBeNull()
    expect(done.result?.confirmed).toMatchObject([{ pendingRestart: true }])
    rmSync(library)
    const restart = await f.run({ kind: 'restart-instance', instanceId: id, mode: 'fast' })
    expect(restart.state).toBe('succeeded')
    const rolledBack = restart.result?.rolledBack as { line: string; reason: string; confirmed: unknown[] }
    expect(rolledBack.reason).toContain('late')
    expect(rolledBack.line).toMatch(/^line \d+ of floe\.conf: shared_preload_libraries = /)
    expect(rolledBack.confirmed).toEqual([
      { name: 'shared_preload_libraries', oldValue: 'late', newValue: null, pendingRestart: false },
    ])
    expect((await f.observed(id))?.state).toBe('running')
    expect(read('floe.conf')).not.toContain('late')
    expect(await shown('work_mem')).toBe('11MB')
    await noDrift()
  })

  test('goes back to what it last started with, also where drift was adopted while a setting waited', async () => {
    const library = join(prefix, 'lib/postgresql/late.so')
    copyFileSync(join(prefix, 'lib/postgresql/auto_explain.so'), library)
    expect((await change('shared_preload_libraries', 'late')).state).toBe('succeeded')
    await f.query(id, 'alter system set vacuum_cost_limit = 777')
    await f.query(id, 'select pg_reload_conf()')
    await someDrift(1)
    expect((await resolve('adopt')).state).toBe('succeeded')
    rmSync(library)
    const restart = await f.run({ kind: 'restart-instance', instanceId: id, mode: 'fast' })
    expect(restart.result?.rolledBack).toMatchObject({ reason: expect.stringContaining('late') })
    expect(read('floe.conf')).not.toContain('late')
    await noDrift()
  })

  test('edited into postgresql.conf too; what was written there is kept beside', async () => {
    appendFileSync(path('postgresql.conf'), 'work_mem = a lot\n')
    const restart = await f.run({ kind: 'restart-instance', instanceId: id, mode: 'fast' })
    const rolledBack = restart.result?.rolledBack as { line: string }
    expect(rolledBack.line).toMatch(/^line \d+ of postgresql\.conf: work_mem = a lot$/)
    expect((await f.observed(id))?.state).toBe('running')
    expect(read('postgresql.conf')).not.toContain('a lot')
    expect(read('postgresql.conf.refused')).toContain('work_mem = a lot')
  })

  test('is not rolled back where nothing was changed: it fails with the engine’s words', async () => {
    const binary = `${f.dataDirectory(id)}/global/pg_control`
    const kept = readFileSync(binary)
    await f.must({ kind: 'stop-instance', instanceId: id, mode: 'fast' })
    rmSync(binary)
    const restart = await f.run({ kind: 'restart-instance', instanceId: id, mode: 'fast' })
    expect(restart.fault?.code).toBe('instance.not_started')
    writeFileSync(binary, kept, { mode: 0o600 })
    giveTo(binary, f.userOf(id))
    expect(existsSync(binary)).toBe(true)
    await f.must({ kind: 'start-instance', instanceId: id })
  })
})
