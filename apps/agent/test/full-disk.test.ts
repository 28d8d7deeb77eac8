import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdirSync, readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { waitUntil } from '@floe/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { AgentFixture, asInstanceId } from './agent-fixture'

// The agent's own state on a small file system that is filled up for real. Mounting one takes root, as in the test run.
let f: AgentFixture
let state: string
beforeAll(async () => {
  f = await AgentFixture.start()
  state = join(f.agent.home.home, 'agent')
  await f.agent.end('SIGTERM')
  rmSync(state, { recursive: true })
  mkdirSync(state, { mode: 0o700 })
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4m,mode=700', 'floe-test', state])
  await f.agent.start()
})
afterAll(async () => {
  await f.agent.end()
  execFileSync('umount', [state])
  await f.remove()
})

function fill(): void {
  for (const size of [1 << 16, 1 << 12])
    for (let n = 0; ; n++)
      try {
        writeFileSync(join(state, `filler-${size}-${n}`), Buffer.alloc(size))
      } catch {
        break
      }
  expect(statfsSync(state).bavail).toBe(0)
}
function free(): void {
  for (const name of readdirSync(state).filter((n) => n.startsWith('filler-'))) rmSync(join(state, name))
}
const report = () => f.read.report.read.query({ after: null })
const problems = async () => ((await report()).problems ?? []).map((p) => p.fault.code)
const newestSeq = async (id: string) =>
  (await f.read.telemetry.read.query({ instanceId: asInstanceId(id), afterSeq: -1 })).newestSeq ?? -1

test('with no room left instances stay healthy and measured, can be stopped and deleted, and everything else says why not', async () => {
  const [id, other] = [await f.createRunning(), await f.createRunning()]
  await waitUntil('it is measured', async () => (await newestSeq(id)) > 1)
  fill()
  const before = await newestSeq(id)
  await waitUntil(
    'it is said',
    async () => (await problems()).includes('telemetry.samples_not_stored'),
    30_000,
  )
  await waitUntil('samples go on', async () => (await newestSeq(id)) > before + 3, 30_000)
  expect((await report()).instances.map((i) => i.state)).toEqual(['running', 'running'])
  const { samples } = await f.read.telemetry.read.query({
    instanceId: asInstanceId(id),
    afterSeq: before - 1,
  })
  expect(samples.map((s) => s.seq)).toEqual(samples.map((_, i) => before + i))
  // said once of each, not every second; of which first is chance
  const said = `samples-not-stored:${id}`
  await waitUntil('it is said of this one', async () => f.agent.output.includes(said), 30_000)
  expect(f.agent.output.match(new RegExp(said, 'g'))).toHaveLength(1)

  const refused = f.task.task.start.mutate({
    key: f.newKey(),
    task: { kind: 'reload-instance', instanceId: asInstanceId(id) },
  })
  await expect(refused).rejects.toMatchObject({ data: { fault: { code: 'host.no_room' } } })

  // what an operation does with an instance whose creation was refused: nothing is left, and its name is free
  const unmade = randomUUID()
  const creation = f.begin({
    kind: 'create-instance',
    instanceId: unmade,
    name: 'unmade',
    settings: {},
    ownerPasswordVerifier: null,
  } as never)
  await expect(creation).rejects.toMatchObject({ data: { fault: { code: 'host.no_room' } } })
  expect(
    await f.run({
      kind: 'delete-instance',
      instanceId: unmade,
      confirmName: 'unmade',
      keepFiles: false,
    } as never),
  ).toMatchObject({ state: 'succeeded' })

  expect((await f.run({ kind: 'stop-instance', instanceId: id, mode: 'fast' })).state).toBe('succeeded')
  expect((await f.observed(id))?.state).toBe('stopped')
  expect(await problems()).toContain('agent.instances_not_stored')
  const deleted = await f.run({
    kind: 'delete-instance',
    instanceId: other,
    confirmName: `t-${other.slice(0, 8)}`,
    keepFiles: false,
  })
  expect(deleted).toMatchObject({ state: 'succeeded', result: { removed: true } })

  free()
  await waitUntil('all is stored again', async () => (await problems()).length === 0, 60_000)
  await f.agent.end('SIGKILL')
  await f.agent.start()
  expect((await report()).instances.map((i) => [i.instanceId, i.state])).toEqual([[id, 'stopped']])
  await f.must({ kind: 'start-instance', instanceId: id })
}, 180_000)
