// What the agent knows of its instances can be damaged or lost: engines run on, and the agent finds them again.
import {
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { waitUntil } from '@floe/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { AgentFixture } from './agent-fixture'

let f: AgentFixture
let a: string
let b: string
beforeAll(async () => {
  f = await AgentFixture.start(4)
  a = await f.createRunning({ name: 'first', settings: { work_mem: '7MB' } })
  b = await f.createRunning({ name: 'second' })
})
afterAll(() => f.remove())

const registrations = () => join(f.agent.home.home, 'agent/instances')
const copyOf = (id: string) => join(f.installation.instancesDirectory, id, 'registration.json')
const problems = async () => (await f.read.report.read.query({ after: null })).problems ?? []
const running = async (id: string) => {
  const seen = await f.waitForState(id, 'running')
  return { pid: seen.postmasterPid, port: seen.port, name: seen.name, user: seen.user }
}
const restartAgent = async (meanwhile: () => void) => {
  await f.agent.end()
  meanwhile()
  await f.agent.start()
}

test('a truncated registration is put aside and read back, and keeps no instance from being seen', async () => {
  const before = await Promise.all([running(a), running(b)])
  await restartAgent(() => truncateSync(join(registrations(), `${a}.json`), 60))
  expect(await Promise.all([running(a), running(b)])).toEqual(before)
  expect(f.agent.output).toContain('registration.unreadable')
  expect(readdirSync(join(registrations(), 'unreadable'))).toEqual([expect.stringContaining(`-${a}.json`)])
  expect(await problems()).toEqual([])
  await f.must({ kind: 'restart-instance', instanceId: a, mode: 'fast' })
  expect(await f.query(a, "select current_setting('work_mem') as mem")).toEqual([{ mem: '7MB' }])
})

test('with its whole state gone the agent finds its instances by their directories, and rules them as before', async () => {
  const before = await Promise.all([running(a), running(b)])
  await restartAgent(() => rmSync(join(f.agent.home.home, 'agent'), { recursive: true }))
  expect(await Promise.all([running(a), running(b)])).toEqual(before)
  await f.must({ kind: 'stop-instance', instanceId: b, mode: 'fast' })
  await f.must({ kind: 'start-instance', instanceId: b })
  expect(await f.query(b, 'select 1 as one')).toEqual([{ one: 1 }])
})

test('a copy from another host is not believed: the loss is reported, and over once the file is back', async () => {
  const file = join(registrations(), `${b}.json`)
  const good = readFileSync(file, 'utf8')
  const copy = readFileSync(copyOf(b), 'utf8')
  await restartAgent(() => {
    writeFileSync(copyOf(b), copy.replace(f.installation.hostId, '00000000-0000-4000-8000-000000000000'))
    truncateSync(file, 0)
  })
  await running(a)
  expect(await f.observed(b)).toBeUndefined()
  expect(await problems()).toEqual([
    expect.objectContaining({
      instanceId: b,
      fault: expect.objectContaining({
        code: 'agent.registration_lost',
        detail: expect.stringMatching(/put aside as .*It belongs to host 00000000/s),
      }),
    }),
  ])
  await restartAgent(() => writeFileSync(file, good, { mode: 0o600 }))
  await running(b)
  expect(await problems()).toEqual([])
  expect(readFileSync(copyOf(b), 'utf8')).toBe(copy)
})

test('a copy that others may write to is not believed', async () => {
  await restartAgent(() => {
    rmSync(join(registrations(), `${b}.json`))
    chmodSync(copyOf(b), 0o666)
  })
  await running(a)
  expect(await f.observed(b)).toBeUndefined()
  expect((await problems()).map((p) => p.fault.code)).toEqual(['agent.registration_lost'])
})

test('a deleted instance leaves no copy', async () => {
  await f.must({ kind: 'delete-instance', instanceId: a, confirmName: 'first', keepFiles: false } as never)
  await waitUntil('it is gone', async () => !existsSync(copyOf(a)))
  await restartAgent(() => {})
  expect(await f.observed(a)).toBeUndefined()
})
