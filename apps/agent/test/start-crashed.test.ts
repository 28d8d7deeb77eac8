import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { waitUntil } from '@floe/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { AgentFixture } from './agent-fixture'

let f: AgentFixture
let id: string
beforeAll(async () => {
  f = await AgentFixture.start(4, undefined, { startCrashed: true })
  id = await f.createRunning()
})
afterAll(() => f.remove())

const kill = async () => {
  const pid = (await f.observed(id))?.postmasterPid as number
  process.kill(pid, 'SIGKILL')
  return pid
}
const backWithout = (pid: number) =>
  waitUntil(
    'it is back by itself',
    async () => {
      const seen = await f.observed(id)
      return seen?.state === 'running' && seen.postmasterPid !== pid ? seen : null
    },
    30_000,
  )

test('an instance whose processes were killed is seen crashed and comes back by itself, with its rows', async () => {
  await f.query(id, 'create table kept as select 42 as answer')
  // clients are told FATALs of their own, which is not why it ends
  await expect(f.connect(id, 'wrong')).rejects.toThrow('password authentication failed')
  const pid = await kill()
  expect((await f.waitForState(id, 'crashed')).because).toMatch(/^it ended without a word in its log: killed/)
  await backWithout(pid)
  expect(await f.query(id, 'select answer from kept')).toEqual([{ answer: 42 }])
  // with images in the WAL page repair has nothing to look at; how long the start took is told all the same
  const recovery = await waitUntil(
    'the report tells of the start',
    async () => (await f.observed(id))?.protection?.recovery,
  )
  expect(recovery).toMatchObject({ kind: 'crash', policy: 'none', checked: 0 })
  expect(recovery.start?.readyAt).toBeGreaterThan(recovery.start?.beganAt as number)
  await f.must({ kind: 'restart-instance', instanceId: id, mode: 'fast' })
  await waitUntil('a start that followed no crash is none', async () => {
    const seen = await f.observed(id)
    return seen?.state === 'running' && seen.protection && seen.protection.recovery === null
  })
})

test('one that is fenced stays down', async () => {
  await kill()
  await f.waitForState(id, 'crashed')
  const fenced = await f.must({ kind: 'fence-instance', instanceId: id, reason: 'another one took over' })
  expect(fenced).toMatchObject({ wasRunning: false })
  expect(await f.waitForState(id, 'stopped')).toMatchObject({ postmasterPid: null })
})

test('one that cannot start is left for a person, who is not kept waiting', async () => {
  id = await f.createRunning()
  const path = `${f.dataDirectory(id)}/postgresql.conf`
  const good = readFileSync(path, 'utf8')
  appendFileSync(path, 'work_mem = a lot\n')
  await kill()
  const seen = await waitUntil(
    'it was tried',
    async () => {
      const o = await f.observed(id)
      return o?.state === 'crashed' && o.because?.includes('postgresql.conf') ? o : null
    },
    20_000,
  )
  expect(seen.postmasterPid).toBeNull()
  writeFileSync(path, good)
  await f.must({ kind: 'start-instance', instanceId: id })
})
