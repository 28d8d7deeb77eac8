import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { AgentFixture } from './agent-fixture'

let it: AgentFixture
beforeAll(async () => {
  it = await AgentFixture.start()
})
afterAll(() => it.agent.remove())

/** Memory of the process that is no page of a file, in MB: pages of Node's own program are others' too. */
const ownMegabytes = () =>
  Number(/^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${it.agent.pid}/status`, 'utf8'))?.[1]) / 1024

test('an agent without instances that answers calls has no more than 31 MB of its own', async () => {
  for (let call = 0; call < 50; call++) {
    await it.read.hello.query()
    await it.read.report.read.query({ after: null })
  }
  // 23 to 26 were measured; 27 with every schema made, 44 with a framework of HTTP and Node's client of HTTP
  expect(ownMegabytes()).toBeLessThan(31)
})

test('the bundle holds a byte for each character, and loads no client of HTTP', () => {
  const source = readFileSync(inject('bundle'), 'utf8')
  expect(source).not.toMatch(/[^\0-\x7f]/)
  expect(source).not.toMatch(/["']node:http["']/)
})

test('the bundle holds no operations of the console', () => {
  // esbuild keeps all that a dynamic import reaches, and `enrol` or a certificate's request must not reach the whole domain
  expect(readFileSync(inject('bundle'), 'utf8')).not.toContain('operationRecords')
})
