import { execFileSync } from 'node:child_process'
import { mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { createAgentClient } from '@floe/agent-contract/client'
import { waitUntil } from '@floe/testkit'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { AgentFixture } from './agent-fixture'

let f: AgentFixture
let id: string
let other: string
beforeAll(async () => {
  f = await AgentFixture.start()
  id = await f.createRunning()
  other = await f.createRunning()
})
afterAll(() => f?.remove())

const seen = async (instanceId: string) => {
  const observed = await f.observed(instanceId)
  return [observed?.state, observed?.because ?? null]
}

describe('whoever is superuser of an instance puts something else in the place of its settings', () => {
  for (const [kind, plant] of [
    ['a pipe', (path: string) => execFileSync('mkfifo', [path])],
    ['a link', (path: string) => symlinkSync('/etc/hostname', path)],
    ['a directory', (path: string) => mkdirSync(path)],
  ] as const)
    for (const name of ['floe.conf', 'postgresql.auto.conf'])
      test(`${kind} for ${name}: a new agent reports it, with the reason, and the others`, async () => {
        const path = `${f.dataDirectory(id)}/${name}`
        renameSync(path, `${path}.own`)
        plant(path)
        try {
          await f.agent.end()
          await f.agent.start()
          const reason = `its settings cannot be read: "${path}" is not a regular file`
          await waitUntil('both are reported, and what is wrong', async () => {
            const both = [...(await seen(other)).slice(0, 1), ...(await seen(id))]
            return JSON.stringify(both) === JSON.stringify(['running', 'running', reason])
          })
        } finally {
          rmSync(path, { recursive: true })
          renameSync(`${path}.own`, path)
        }
        await waitUntil('they are read again', async () => !(await seen(id))[1]?.includes('cannot be read'))
      })

  test('a pipe for the control file of a stopped one: reports come in time, and it starts again', async () => {
    await f.must({ kind: 'stop-instance', instanceId: id, mode: 'fast' })
    const path = `${f.dataDirectory(id)}/global/pg_control`
    renameSync(path, `${path}.own`)
    execFileSync('mkfifo', [path])
    try {
      await f.agent.end()
      await f.agent.start()
      // a client that waits as the controller does
      const client = createAgentClient({ ...f.agent.home.endpoint('read'), timeoutMs: 4_000 })
      try {
        await waitUntil('the other is reported', async () => {
          const { instances } = await client.trpc.report.read.query({ after: null })
          return instances.find((i) => i.instanceId === other)?.state === 'running'
        })
      } finally {
        await client.close()
      }
    } finally {
      rmSync(path)
      renameSync(`${path}.own`, path)
    }
    await waitUntil('the file is read', async () => (await f.observed(id))?.systemIdentifier)
    await f.must({ kind: 'start-instance', instanceId: id })
  })
})
