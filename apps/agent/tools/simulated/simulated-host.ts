import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import {
  type AgentHandlers,
  CheckpointRead,
  contractVersion,
  createAgentRouter,
  type InstanceObserved,
  Report,
  type TaskKey,
  type TaskStartInput,
  type TaskStatus,
  TelemetryRead,
} from '@floe/agent-contract'
import { type AgentRight, fault, HostId, secretFiles } from '@floe/domain'
import { RING_MINUTES, SAMPLE_INTERVAL_MS } from '@floe/telemetry'
import { createHTTPHandler } from '@trpc/server/adapters/standalone'
import type { z } from 'zod'
import { enrol } from '../../src/enrol'
import { AgentIdentity } from '../../src/identity'
import { rightOfConnection } from '../../src/router/listen'
import { SimulatedFigures } from './figures'

type StartInput = z.output<typeof TaskStartInput>
type Instance = {
  observed: InstanceObserved
  /** What of it does not change from one second to the next, in JSON. */
  fixed: string
  place: number
  figures: SimulatedFigures | null
}
/** Answers of one procedure in JSON, as the contract's router would have written them. */
type Quick = (input: Record<string, unknown>) => string | Promise<string>

const TASK_MS = 50
const RING = (RING_MINUTES * 60_000) / SAMPLE_INTERVAL_MS
/** Each how many-eth answer is held against the contract. */
const CHECK_EVERY = 5_000

export type SimulatedHostOptions = {
  name: string
  /** FLOE_HOME of its own, for certificate and key. */
  home: string
  /** Of the console. */
  console: string
  token: string
  /** sha256 of its authority. */
  authority: string
  /** Place of its first instance among all that are simulated: what tells their figures apart. */
  firstPlace: number
}

/**
 * An agent without engines: it is enrolled as any, answers by the real contract over mutual TLS, and takes the tasks by
 * which instances come and go. What a controller asks each second is answered from JSON made beforehand, because who
 * simulates shares the machine with what is measured; everything else goes through the contract's router.
 */
export class SimulatedHost {
  readonly #options: SimulatedHostOptions
  readonly #instances = new Map<string, Instance>()
  readonly #tasks = new Map<string, { input: StartInput; status: TaskStatus }>()
  readonly #bootId = randomUUID()
  readonly #rights = new WeakMap<object, AgentRight | null>()
  #hostId = ''
  #identity: AgentIdentity | undefined
  #reportSeq = 1
  #startedAt = Date.now()
  #answers = 0

  constructor(options: SimulatedHostOptions) {
    this.#options = options
  }

  /** Listens, is enrolled, and serves what it got the certificate for. Answers how to close it. */
  async start(): Promise<() => void> {
    const { name, home, console, token, authority } = this.#options
    const server = createServer({ minVersion: 'TLSv1.3', requestCert: true, rejectUnauthorized: false })
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(0, '127.0.0.1', resolve)
    })
    const { port } = server.address() as { port: number }
    const agentUrl = `https://127.0.0.1:${port}`
    const { hostId } = await enrol({ home, console, token, authority, agentUrl })
    this.#hostId = hostId
    this.#identity = new AgentIdentity({
      hostId: HostId.parse(hostId),
      authority: readFileSync(join(home, 'secrets', secretFiles.authority), 'utf8'),
      identityFile: join(home, 'secrets', secretFiles.agentIdentity),
    })
    const serve = () =>
      server.setSecureContext({ ...(this.#identity as AgentIdentity).served, minVersion: 'TLSv1.3' })
    serve()
    this.#identity.onChange(serve)
    const router = createHTTPHandler({
      basePath: '/trpc/',
      router: createAgentRouter(this.#handlers(name)),
      createContext: ({ req }) => ({ right: this.#rightOf(req) }),
    })
    server.on('request', (request, response) => {
      if (!this.#answerQuickly(request, response)) router(request, response)
    })
    return () => {
      server.close()
      server.closeAllConnections()
    }
  }

  /** Of a connection, looked up once: a certificate does not change under it. */
  #rightOf(request: IncomingMessage): AgentRight | null {
    const known = this.#rights.get(request.socket)
    if (known !== undefined) return known
    const right = rightOfConnection(request)
    this.#rights.set(request.socket, right)
    return right
  }

  readonly #quick: Record<string, Quick> = {
    'telemetry.read': (input) => this.#telemetry(input as never),
    'checkpoint.read': () => '{"checkpoints":[],"running":null}',
    'report.read': (input) => this.#report(input as never),
  }

  /** False where the router has to answer. */
  #answerQuickly(request: IncomingMessage, response: ServerResponse): boolean {
    const url = request.url ?? ''
    const mark = url.indexOf('?')
    if (request.method !== 'GET' || mark < 0 || !url.startsWith('/trpc/')) return false
    const paths = url.slice('/trpc/'.length, mark).split(',')
    const parameters = new URLSearchParams(url.slice(mark))
    if (parameters.get('batch') !== '1' || !paths.every((path) => path in this.#quick)) return false
    if (this.#rightOf(request) === null) return false
    const inputs = JSON.parse(parameters.get('input') ?? '{}') as Record<
      string,
      { json: Record<string, unknown> }
    >
    let answers: (string | Promise<string>)[]
    try {
      answers = paths.map((path, i) => (this.#quick[path] as Quick)(inputs[i]?.json ?? {}))
    } catch {
      // an instance it does not have: the router says so in the contract's words
      return false
    }
    void Promise.all(answers).then((texts) => {
      if (++this.#answers % CHECK_EVERY === 1)
        paths.forEach((path, i) => {
          checkAgainstContract(path, texts[i] as string)
        })
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(`[${texts.map((text) => `{"result":{"data":{"json":${text}}}}`).join(',')}]`)
    })
    return true
  }

  #instance(instanceId: string): Instance {
    const instance = this.#instances.get(instanceId)
    if (!instance) throw fault('instance.not_found', 'there is no such instance on this host')
    return instance
  }

  #telemetry({
    instanceId,
    afterSeq,
    limit,
  }: {
    instanceId: string
    afterSeq: number
    limit: number
  }): string {
    const { figures } = this.#instance(instanceId)
    const newest = figures ? figures.newest(Date.now()) : -1
    if (!figures || newest < 0) return '{"samples":[],"oldestSeq":null,"newestSeq":null}'
    const oldest = Math.max(0, newest - RING + 1)
    const samples: string[] = []
    for (let seq = Math.max(afterSeq + 1, oldest); seq <= newest && samples.length < limit; seq++)
      samples.push(figures.sample(seq))
    return `{"samples":[${samples.join(',')}],"oldestSeq":${oldest},"newestSeq":${newest}}`
  }

  async #report({
    after,
    waitMs,
  }: {
    after: { bootId: string; seq: number } | null
    waitMs: number
  }): Promise<string> {
    if (after && after.bootId === this.#bootId && after.seq >= this.#reportSeq && waitMs > 0)
      await pause(waitMs)
    const now = Date.now()
    const instances = [...this.#instances.values()].map(({ fixed, figures }) => {
      const newest = figures ? figures.newest(now) : -1
      return `${fixed},"newestSeq":${newest < 0 ? null : newest},"observedAt":${now}}`
    })
    const head = JSON.stringify({
      bootId: this.#bootId,
      seq: this.#reportSeq,
      at: now,
      facts: this.#facts(now),
      problems: [],
    })
    return `${head.slice(0, -1)},"instances":[${instances.join(',')}]}`
  }

  #facts(now: number) {
    return {
      hostName: this.#options.name,
      operatingSystem: 'simulated',
      kernel: 'none',
      architecture: 'x86_64',
      cpus: 64,
      memoryBytes: 2 ** 38,
      memoryAvailableBytes: 2 ** 37 + (now % 2 ** 30),
      loadAverage1: (now % 6_400) / 100,
      uptimeSeconds: (now - this.#startedAt) / 1_000,
      supervision: 'detached' as const,
      instancePorts: { from: 20_000, to: 29_999, used: this.#instances.size },
      disks: ['/', '/data'].map((mount) => ({
        mount,
        device: '/dev/nvme0n1',
        fileSystem: 'xfs',
        options: 'rw,noatime',
        sizeBytes: 2 ** 42,
        freeBytes: 2 ** 41,
        nvme: true,
      })),
    }
  }

  #handlers(name: string): AgentHandlers {
    const none = async () => {
      throw fault('agent.simulated', 'this host is simulated', {
        hint: 'It has no engines: instances on it can be created, started, stopped and deleted, and watched.',
      })
    }
    const identity = () => this.#identity as AgentIdentity
    const parsed = async <T>(text: string | Promise<string>) => JSON.parse(await text) as T
    const figuresOf = (instanceId: string) => this.#instance(instanceId).figures
    return {
      hello: async () => ({
        contractVersion,
        agentVersion: 'simulated',
        hostId: HostId.parse(this.#hostId),
        hostName: name,
        bootId: this.#bootId,
        startedAt: this.#startedAt,
        now: Date.now(),
        capabilities: ['report.read', 'telemetry.read', 'telemetry.stream', 'certificate.renew'],
        certificate: identity().facts,
      }),
      readReport: (input) => parsed(this.#report(input)),
      startTask: async (input) => this.#startTask(input),
      checkTask: async ({ key, afterLogSeq }) => this.#checkTask(key, afterLogSeq),
      cancelTask: async (key) => this.#checkTask(key, 0),
      listSettings: none,
      checkSettings: none,
      listCommitModes: none,
      listDatabaseRoles: none,
      readProtection: none,
      readFlashback: none,
      readSharedServer: none,
      listFlashbackTables: none,
      readFlashbackActivity: none,
      listFlashbackLost: none,
      listFlashbackResults: none,
      readFlashbackRows: none,
      readFlashbackDownload: none,
      listKeptAside: async () => ({ keptAside: [] }),
      readKeptAside: none,
      readTelemetry: async (input) => parsed(this.#telemetry(input)),
      streamTelemetry: async function* ({ instanceId, afterSeq }, signal) {
        const figures = figuresOf(instanceId)
        if (!figures) return
        for (let seq = (afterSeq ?? figures.newest(Date.now())) + 1; !signal?.aborted; seq++) {
          const due = figures.at(seq) - Date.now()
          if (due > 0) await pause(due, undefined, { signal }).catch(() => {})
          yield JSON.parse(figures.sample(seq))
        }
      },
      readCheckpoints: async () => ({ checkpoints: [], running: null, stalls: [], runningStall: null }),
      requestCertificate: () => identity().request(),
      installCertificate: async ({ certificate }) => identity().install(certificate),
    }
  }

  #startTask(input: StartInput): TaskStatus {
    const id = idOf(input.key)
    if (!this.#tasks.has(id)) {
      const startedAt = Date.now()
      const status: TaskStatus = {
        key: input.key,
        state: 'running',
        progress: null,
        message: null,
        log: [{ seq: 1, at: startedAt, text: 'simulated' }],
        result: null,
        fault: null,
        startedAt,
        endedAt: null,
      }
      this.#tasks.set(id, { input, status })
      setTimeout(() => {
        const { instanceId } = input.task
        status.endedAt = Date.now()
        try {
          status.result = this.#carryOut(input.task)
          status.state = 'succeeded'
        } catch (error) {
          status.fault = { code: 'agent.simulated', message: String(error) }
          status.state = 'failed'
        }
        const instance = this.#instances.get(instanceId)
        if (instance) instance.fixed = fixedPart(instance.observed)
        this.#reportSeq++
      }, TASK_MS)
    }
    return this.#checkTask(input.key, 0)
  }

  #checkTask(key: TaskKey, afterLogSeq: number): TaskStatus {
    const task = this.#tasks.get(idOf(key))
    if (task) return { ...task.status, log: task.status.log.filter(({ seq }) => seq > afterLogSeq) }
    return {
      key,
      state: 'not-started',
      progress: null,
      message: null,
      log: [],
      result: null,
      fault: null,
      startedAt: null,
      endedAt: null,
    }
  }

  #carryOut(task: StartInput['task']): Record<string, unknown> {
    if (task.kind === 'create-instance') {
      const used = this.#instances.size
      const place = this.#options.firstPlace + used
      const observed = observedAs(task.instanceId, task.name, 20_000 + used)
      this.#instances.set(task.instanceId, { observed, fixed: fixedPart(observed), place, figures: null })
      return { port: observed.port, directory: observed.directory, managed: task.settings }
    }
    const instance = this.#instance(task.instanceId)
    const { observed } = instance
    switch (task.kind) {
      case 'start-instance':
        observed.state = 'running'
        observed.role = 'primary'
        observed.postmasterPid = observed.port
        observed.startedAt = Date.now()
        instance.figures ??= new SimulatedFigures(Date.now(), instance.place)
        return { postmasterPid: observed.port, readyMs: TASK_MS }
      case 'stop-instance':
        observed.state = 'stopped'
        observed.role = null
        observed.postmasterPid = null
        return { stoppedMs: TASK_MS }
      case 'delete-instance':
        this.#instances.delete(task.instanceId)
        return { removed: true, keptDirectory: null }
      default:
        throw new Error(`a simulated host cannot carry out "${task.kind}"`)
    }
  }
}

const idOf = (key: TaskKey) => `${key.operationId}/${key.step}/${key.attempt}`

/** Everything but what changes every second, which is appended: the last fields of an observation. */
function fixedPart({ newestSeq: _, observedAt: __, ...rest }: InstanceObserved): string {
  return JSON.stringify(rest).slice(0, -1)
}

function observedAs(instanceId: string, name: string, port: number): InstanceObserved {
  const directory = `/var/lib/floe/simulated/${instanceId}`
  return {
    instanceId: instanceId as InstanceObserved['instanceId'],
    name,
    state: 'stopped',
    because: null,
    role: null,
    engineVersion: '18.6',
    systemIdentifier: '7500000000000000000',
    port,
    directory,
    connection: {
      host: '127.0.0.1',
      port,
      socketDirectory: '/run/floe/simulated',
      user: 'postgres',
      database: 'postgres',
    },
    postmasterPid: null,
    startedAt: null,
    dataChecksums: true,
    timeline: 1,
    pendingRestart: [],
    newestSeq: null,
    observedAt: Date.now(),
    settingDrift: [],
    replication: {
      at: Date.now(),
      endLsn: '0/3000060' as never,
      replayedLsn: null,
      timeline: 1,
      replayPaused: false,
      replayDelayMs: null,
      standbys: [],
      slots: [],
      receiver: null,
      synchronousStandbyNames: '',
      synchronousCommit: 'on',
      fullPageWrites: true,
      waitingCommits: 0,
    },
  }
}

const quickSchemas: Record<string, z.ZodType> = {
  'telemetry.read': TelemetryRead,
  'checkpoint.read': CheckpointRead,
  'report.read': Report,
}

/** Ends the process when an answer made beforehand is not what the contract's router would have let through. */
function checkAgainstContract(path: string, text: string): void {
  const answer = JSON.parse(text) as unknown
  const schema = quickSchemas[path] as z.ZodType
  const parsed = schema.safeParse(answer)
  if (parsed.success) return
  process.stderr.write(`simulated answer of ${path} is not of the contract: ${parsed.error?.message}\n`)
  process.exit(1)
}
