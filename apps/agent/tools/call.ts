import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { agentFault, createAgentClient } from '@floe/agent-contract/client'
import { agentUrl, Installation, programHome, secretFiles } from '@floe/domain'

// Calls one procedure by hand: `FLOE_HOME=… tsx tools/call.ts task.start '{"key":…,"task":…}'`.
const [path, input] = process.argv.slice(2)
const home = process.env.FLOE_HOME
if (!path || !home) throw new Error('usage: FLOE_HOME=… tsx tools/call.ts PROCEDURE [INPUT AS JSON]')
const read = (file: string, directory = home) => readFileSync(join(directory, file), 'utf8')
const host = Installation.parse(JSON.parse(read('config.json')))
const client = createAgentClient({
  url: agentUrl(host),
  hostId: host.hostId,
  authority: read(`secrets/${secretFiles.authority}`),
  identity: read(`secrets/${secretFiles.controllerIdentity}`, programHome(host, 'controller')),
  timeoutMs: 30_000,
})
type Call = (input: unknown) => Promise<unknown>
let procedure: unknown = client.trpc
for (const part of path.split('.')) procedure = (procedure as Record<string, unknown>)[part]
const { query, mutate } = procedure as { query: Call; mutate: Call }
const writes = path === 'task.start' || path === 'task.cancel'
try {
  const answer = await (writes ? mutate : query)(input === undefined ? undefined : JSON.parse(input))
  process.stdout.write(`${JSON.stringify(answer, null, 2)}\n`)
} catch (error) {
  process.stdout.write(`${JSON.stringify({ fault: agentFault(error) }, null, 2)}\n`)
  process.exitCode = 1
} finally {
  await client.close()
}
