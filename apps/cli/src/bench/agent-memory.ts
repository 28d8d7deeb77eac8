import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, readlinkSync } from 'node:fs'
import { get } from 'node:https'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { agentUrl, fault, type Installation, programHome, secretFiles } from '@floe/domain'
import { agentStart } from '@floe/host/agent-start'
import { checkoutDirectory, type Home, requireInstallation } from '../installation/home'
import { liveRecord } from '../process/records'
import { type BenchReport, describeHost, type Figure, figure } from './bench'
import { type MemoryMap, memoryMapOf } from './memory-map'
import { makePrivateInstallation } from './private-installation'
import { processorSeconds } from './processor-time'

const COUNTS = [0, 13, 50]
const COUNTS_SHORT = [0, 2]
const QUIET_MS = 300_000
const QUIET_SHORT_MS = 20_000
/** Small, so that fifty fit beside other work. */
const SETTINGS = ['shared_buffers=16MB', 'max_wal_size=64MB', 'min_wal_size=32MB']
const GOAL_MB = { none: 60, some: 120 }

/** What Node takes before a line of ours: nothing at all; servers, a digest and a child; the agent's libraries beside. */
const EMPTY = 'process.stdout.write("."); setInterval(() => {}, 1e9)'
const SERVING = `
const tls = require('node:tls'), http = require('node:http'), crypto = require('node:crypto')
tls.createServer({}).listen(0, '127.0.0.1')
http.createServer(() => {}).listen(0, '127.0.0.1')
crypto.createHash('sha256').update('a').digest()
require('node:child_process').execFile('true', () => {})
setTimeout(() => process.stdout.write('.'), 1000)
`
const withLibraries = () => `${SERVING}
const ofAgent = require('node:module').createRequire(${JSON.stringify(join(checkoutDirectory(), 'apps/agent/package.json'))})
globalThis.kept = ['pg', 'zod', 'pino', '@trpc/server', 'superjson'].map((name) => ofAgent(name))
`

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Memory of the agent's Node, started as the agent is, with a program that does next to nothing. */
async function memoryOfNode(node: string, program: string): Promise<MemoryMap> {
  const child = spawn(node, [...agentStart.options, '-e', program], {
    env: { ...process.env, ...agentStart.environment, NODE_OPTIONS: '' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    await once(child.stdout, 'data')
    return memoryMapOf(child.pid as number)
  } finally {
    child.kill('SIGKILL')
  }
}

type Heap = { used: number; committed: number; external: number }

/** What the agent says of its JavaScript heap, in MB of 1024 kB. */
async function heapOf(installation: Installation, home: Home): Promise<Heap> {
  const identity = readFileSync(
    join(programHome(installation, 'web'), 'secrets', secretFiles.webIdentity),
    'utf8',
  )
  const asked = get(`${agentUrl(installation)}/metrics`, {
    cert: identity,
    key: identity,
    ca: readFileSync(join(home.secrets, secretFiles.authority), 'utf8'),
    agent: false,
    timeout: 30_000,
  })
  asked.once('timeout', () => asked.destroy(new Error('the agent does not answer')))
  const [response] = await once(asked, 'response')
  const metrics = await text(response)
  const of = (name: string) =>
    Number(new RegExp(`^floe_agent_${name}_bytes (\\d+)`, 'm').exec(metrics)?.[1] ?? Number.NaN) / 1024 ** 2
  return { used: of('heap_used'), committed: of('heap_committed'), external: of('external_memory') }
}

const rounded = (megabytes: number) => Math.round(megabytes * 10) / 10

/**
 * Memory of an installation's agent with no instance, 13 and 50, each after five minutes in which nobody orders anything;
 * the console asks for reports and samples meanwhile, as it does in production. `rss_…_mb` are the figures; the table says
 * where it is, beside what Node takes without the agent.
 */
export async function benchAgentMemory(
  short: boolean,
  say: (line: string) => void,
  log: (line: string) => void,
): Promise<BenchReport> {
  const host = describeHost()
  const counts = short ? COUNTS_SHORT : COUNTS
  const quietMs = short ? QUIET_SHORT_MS : QUIET_MS
  say('bringing up a private installation')
  const installation = await makePrivateInstallation(log)
  const figures: Figure[] = []
  const rows: (string | number | null)[][] = []
  const row = (what: string, map: MemoryMap, heap: Heap | null, secondsPerMinute: number | null) =>
    rows.push([
      what,
      ...[map.resident, map.proportional, map.program, map.programText, map.libraries].map(rounded),
      ...[map.anonymous, map.arena].map(rounded),
      ...(heap === null ? [null, null, null] : [heap.used, heap.committed, heap.external].map(rounded)),
      secondsPerMinute === null ? null : Math.round(secondsPerMinute * 100) / 100,
    ])
  try {
    const agent = liveRecord(installation.home, 'agent')
    if (agent === null) throw fault('bench.no_agent', 'the agent does not run')
    const node = readlinkSync(`/proc/${agent.pid}/exe`)
    row('empty Node', await memoryOfNode(node, EMPTY), null, null)
    row('Node with servers', await memoryOfNode(node, SERVING), null, null)
    row('… and the same libraries', await memoryOfNode(node, withLibraries()), null, null)
    let made = 0
    for (const count of counts) {
      while (made < count) {
        made++
        const set = SETTINGS.flatMap((setting) => ['--set', setting])
        await installation.floe('instance', 'create', `memory-${made}`, ...set)
      }
      say(`${count} instances: ${quietMs / 1000} quiet seconds`)
      const before = processorSeconds(agent.pid)
      await pause(quietMs)
      const perMinute = ((processorSeconds(agent.pid) - before) * 60_000) / quietMs
      const map = memoryMapOf(agent.pid)
      // asked last: a scrape takes memory itself
      const heap = await heapOf(requireInstallation(installation.home), installation.home)
      row(`${count} instances`, map, heap, perMinute)
      figures.push(
        figure(`rss_${count}_mb`, map.resident, 'MB', { most: count === 0 ? GOAL_MB.none : GOAL_MB.some }),
      )
    }
    return {
      bench: 'agent-memory',
      host,
      figures,
      table: {
        headings: [
          'MB',
          ...['resident', 'proportional', "Node's file", 'its code', 'libraries', 'of no file', 'malloc'],
          ...['heap used', 'heap', 'external', 's/min'],
        ],
        rows,
      },
      detail: { options: agentStart.options.join(' '), quietSeconds: quietMs / 1000 },
    }
  } finally {
    await installation.remove()
  }
}
