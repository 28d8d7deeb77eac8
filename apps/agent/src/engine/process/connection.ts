import type { Socket } from 'node:net'
import { AGENT_ROLE, fault } from '@floe/domain'
import { readKernelFile } from '@floe/host/kernel-file'
import { listenFor } from '@floe/host/wait'
import pg from 'pg'

/** How the agent reaches an instance: through the socket, as its own role `floe`. */
export type EngineAddress = {
  socketDirectory: string
  port: number
  password: string
  /** Whose the server's processes have to be; null where all are the agent's own user. */
  uid: number | null
  /** `postgres` where nothing else is said. */
  database?: string
}

// numbers that fit a double come as numbers; everything else stays text
const types = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    (oid === 20 || oid === 26 || oid === 700 || oid === 701 || oid === 1700
      ? Number
      : pg.types.getTypeParser(oid as never, format as never)) as never,
}

/**
 * Opens a connection. Deadlines are of the server (statement) and of the client (connect), in ms. A `plain` one brings
 * no settings of its own, so that it sees what any other new connection sees; its deadlines are the client's.
 */
export async function connectEngine(
  address: EngineAddress,
  options: {
    applicationName: string
    connectMs: number
    statementMs: number
    settings?: Record<string, string>
    plain?: boolean
  },
): Promise<pg.Client> {
  const settings = {
    statement_timeout: String(options.statementMs),
    search_path: 'pg_catalog',
    ...options.settings,
  }
  const client = new pg.Client({
    host: address.socketDirectory,
    port: address.port,
    user: AGENT_ROLE,
    password: address.password,
    database: address.database ?? 'postgres',
    application_name: options.applicationName,
    ...(options.plain
      ? { query_timeout: options.statementMs }
      : {
          options: Object.entries(settings)
            .map(([name, value]) => `-c ${name}=${value}`)
            .join(' '),
        }),
    types,
  })
  // a broken connection shows at the next query; without a listener it would end the process
  client.on('error', () => {})
  boundAnswers(client)
  const callOff = listenFor(options.connectMs, () => streamOf(client).destroy(new Error('timeout expired')))
  try {
    await client.connect()
  } finally {
    callOff()
  }
  const pid = (client as unknown as { processID: number }).processID
  if (address.uid !== null && ownerOf(pid) !== address.uid) {
    await client.end().catch(() => {})
    throw fault('instance.wrong_server', 'another server answers at the instance’s socket', {
      detail: `Its process ${pid} is not one of the instance’s user.`,
    })
  }
  return client
}

const connectionOf = (client: pg.Client) =>
  (client as unknown as { connection: NodeJS.EventEmitter & { stream: Socket } }).connection

/** What a client's questions go through: who destroys it ends the one that waits, with the error given. */
export const streamOf = (client: pg.Client): Socket => connectionOf(client).stream

/** More no question of the agent's is answered with. */
const ANSWER_MAX_BYTES = 32 * 1024 * 1024

/**
 * The superuser of an instance is a stranger and may replace what it answers with: an answer without end must not fill
 * the agent's memory.
 */
function boundAnswers(client: pg.Client): void {
  const stream = streamOf(client)
  let received = 0
  stream.on('data', (chunk: Buffer) => {
    received += chunk.length
    if (received > ANSWER_MAX_BYTES)
      stream.destroy(new Error(`the answer is longer than ${ANSWER_MAX_BYTES} bytes`))
  })
  connectionOf(client).on('readyForQuery', () => {
    received = 0
  })
}

/**
 * Who a server's process is: a socket may be a link to another instance's, which would take the agent for its own. That
 * one tells its own pid; one that lies has to name a process of the user it is expected to be.
 */
function ownerOf(pid: number): number | null {
  try {
    return Number(/^Uid:\s+(\d+)/m.exec(readKernelFile(`/proc/${pid}/status`))?.[1])
  } catch {
    return null
  }
}

/** Runs something over a connection of its own and closes it. */
export async function withEngine<T>(
  address: EngineAddress,
  run: (client: pg.Client) => Promise<T>,
  statementMs = 5_000,
  plain = false,
): Promise<T> {
  let client: pg.Client
  try {
    client = await connectEngine(address, {
      applicationName: 'floe agent task',
      connectMs: 5_000,
      statementMs,
      plain,
    })
  } catch (error) {
    throw fault('instance.no_connection', 'could not connect to the instance', {
      detail: error instanceof Error ? error.message : String(error),
      cause: error,
    })
  }
  try {
    return await run(client)
  } finally {
    await client.end().catch(() => {})
  }
}

/** SQLSTATE of an error of the engine, else null. */
export function sqlState(error: unknown): string | null {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : null
}

/** The engine is up but not yet, or no longer, open for connections. */
export const CANNOT_CONNECT_NOW = '57P03'
