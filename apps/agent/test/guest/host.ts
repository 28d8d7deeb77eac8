// Runs in a guest of the infra suite (apps/cli/infra/guest-host.test.ts), which was made a host by Floe's packages: enrols it
// as a console does, orders what a controller orders, and says what is there after a restart of the machine.

import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TaskInput, TaskKey, TaskStatus } from '@floe/agent-contract'
import { createAgentClient } from '@floe/agent-contract/client'
import { fingerprintOf, issueHostCertificate } from '@floe/authority'
import { scramVerifier } from '@floe/authority/scram-verifier'
import { formatFault } from '@floe/domain'
import { makeTestAuthority, waitUntil } from '@floe/testkit'
import pg from 'pg'

const STATE = '/opt/floe/state.json'
const PASSWORD = 'open sesame'
const ROWS = 20_000
/** An emulated processor starts a program in seconds. */
const PATIENCE_MS = 900_000

type State = {
  agentUrl: string
  hostId: string
  authority: string
  identity: string
  /** An instance that ran, and a primary that was fenced because another one took over. */
  running?: string
  former?: string
}
const until = <T>(what: string, look: Parameters<typeof waitUntil<T>>[1]) =>
  waitUntil(what, look, PATIENCE_MS, 250)
const state = () => JSON.parse(readFileSync(STATE, 'utf8')) as State
const client = () => {
  const { agentUrl: url, ...rest } = state()
  return createAgentClient({ url, ...rest, timeoutMs: 300_000 }).trpc
}

async function run(program: string, ...words: string[]): Promise<{ status: number; said: string }> {
  const child = spawn(program, words, { stdio: ['ignore', 'pipe', 'inherit'] })
  let said = ''
  child.stdout.on('data', (data) => (said += data))
  const [status] = await once(child, 'close')
  return { status, said: said.trim() }
}

/** Enrols this machine: the console's part of it is here. */
async function enrol() {
  const authority = await makeTestAuthority()
  const [installationId, hostId] = [randomUUID(), randomUUID()]
  let agentUrl = ''
  const server = createServer(async (incoming, response) => {
    let text = ''
    for await (const more of incoming.setEncoding('utf8')) text += more
    const asked = JSON.parse(text) as { request: string; agentUrl: string }
    agentUrl = asked.agentUrl
    const certificate = await issueHostCertificate(authority.signing, {
      request: asked.request,
      hostId,
      addresses: [new URL(agentUrl).hostname],
    })
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(
      JSON.stringify({
        ...{ state: 'enrolled', installationId, hostId, hostName: 'db1', authority: authority.certificate },
        certificate,
      }),
    )
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const child = spawn(
    'floe',
    [
      ...['agent', 'enrol', '--token', '-', '--instances', '/var/lib/floe'],
      ...['--console', `http://127.0.0.1:${(server.address() as AddressInfo).port}`],
      ...['--authority', `sha256:${fingerprintOf(authority.certificate)}`],
    ],
    { stdio: ['pipe', 'inherit', 'inherit'] },
  )
  child.stdin.end(`floe-${'A'.repeat(43)}\n`)
  const [status] = await once(child, 'close')
  server.close()
  const identity = await authority.console('task')
  const made: State = { agentUrl, hostId, authority: authority.certificate, identity }
  writeFileSync(STATE, JSON.stringify(made), { mode: 0o600 })
  if (status !== 0) throw new Error(`enrolment ended with ${status}`)
}

async function must(task: object): Promise<void> {
  const key: TaskKey = { operationId: randomUUID(), step: 'step', attempt: 1 }
  await client().task.start.mutate({ key, task: task as TaskInput })
  const status = await until<TaskStatus>('a task ends', async () => {
    const seen = await client().task.check.query({ key })
    return seen.state !== 'running' && seen.state !== 'not-started' ? seen : null
  })
  if (status.state !== 'succeeded')
    throw new Error(
      `${JSON.stringify(task)} ${status.state}: ${status.fault ? formatFault(status.fault) : ''}`,
    )
}

async function observed(instanceId: string | undefined) {
  const { instances } = await client().report.read.query({ after: null })
  const seen = instances.find((i) => i.instanceId === instanceId)
  if (!seen) throw new Error('the instance is not in the report')
  return seen
}

async function query(port: number, sql: string): Promise<Record<string, unknown>[]> {
  const who = { user: 'postgres', database: 'postgres', password: PASSWORD }
  const c = new pg.Client({ host: '127.0.0.1', port, ...who })
  c.on('error', () => {})
  await c.connect()
  try {
    return (await c.query(sql)).rows
  } finally {
    await c.end()
  }
}

async function created(name: string): Promise<string> {
  const instanceId = randomUUID()
  const ownerPasswordVerifier = scramVerifier(PASSWORD)
  await must({ kind: 'create-instance', instanceId, name, settings: {}, ownerPasswordVerifier })
  await must({ kind: 'start-instance', instanceId })
  return instanceId
}

/** An instance with rows, and a former primary: fenced, as one is that another one took over from. */
async function fill() {
  const running = await created('running')
  const former = await created('former')
  const { port } = await observed(running)
  await query(port, `CREATE TABLE t AS SELECT i, md5(i::text) AS text FROM generate_series(1, ${ROWS}) i`)
  await must({ kind: 'fence-instance', instanceId: former, reason: 'another one took over' })
  writeFileSync(STATE, JSON.stringify({ ...state(), running, former }), { mode: 0o600 })
  await rows()
}

async function rows(port?: number) {
  const at = port ?? (await observed(state().running)).port
  const [row] = await query(
    at,
    `SELECT count(*)::int AS n, count(*) FILTER (WHERE text = md5(i::text))::int AS right FROM t`,
  )
  console.log(`rows ${row?.n}, as written ${row?.right}`)
}

const unitOf = (instanceId: string | undefined) => `floe-instance@${instanceId}.service`
async function show(instanceId: string | undefined, ...names: string[]) {
  const { said } = await run(
    'systemctl',
    ...['show', unitOf(instanceId)],
    ...names.map((name) => `--property=${name}`),
  )
  for (const line of said.split('\n'))
    console.log(`${instanceId === state().running ? 'running' : 'former'} ${line}`)
}

/** What is there once the agent answers again. */
async function back() {
  const { running, former } = state()
  await until('the agent starts it by itself', async () => {
    const seen = await observed(running).catch(() => null)
    return seen?.state === 'running' ? seen : null
  })
  await rows()
  console.log(`postmaster ${(await observed(running)).postmasterPid}`)
  await show(running, 'ActiveState', 'UnitFileState', 'Restart')
  console.log(`the former primary is ${(await observed(former)).state}`)
  const { status } = await run('systemctl', 'start', unitOf(former))
  console.log(`its start by hand ended with ${status}`)
  await show(former, 'ActiveState', 'UnitFileState', 'AssertResult')
}

/** An instance runs on while there is no agent that could be asked for its port. */
async function withoutAgent() {
  const [file = ''] = globSync(`/var/lib/floe/*/${state().running}/pgdata/postmaster.pid`)
  const [pid, , , port] = readFileSync(file, 'utf8').split('\n')
  console.log(`postmaster ${pid}`)
  await rows(Number(port))
}

const parts: Record<string, () => Promise<void>> = { enrol, fill, back, 'without-agent': withoutAgent }
try {
  await (parts[process.argv[2] ?? ''] as () => Promise<void>)()
  process.exit(0)
} catch (error) {
  console.log(String(error))
  process.exit(1)
}
