import { execFileSync } from 'node:child_process'
import { mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
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
})
