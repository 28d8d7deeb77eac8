import {
  dispatcherFaultWords,
  formatBytes,
  formatWait,
  pinnedAdvice,
  SHARED_SERVER_LIMITS,
  type SharedServer,
  type SharedServerCounts,
  sharedConnection,
  sharedServerState,
  sharedServerWords,
  workersWords,
} from '@floe/domain'
import type { Command } from 'commander'
import { moment, printResult, table } from '../output'
import { findInstance, type InstanceDetail, openConsole } from './find-instance'
import { verb } from './verb'

type Verb = { json?: boolean }
/** Whose Shared Server it is. */
type Asked = Pick<InstanceDetail, 'name' | 'connection' | 'remoteAccess'>

const waitOf = (ms: number | null) => (ms === null ? '–' : formatWait(ms))

function formatCounts(server: SharedServer, c: SharedServerCounts): string[] {
  return [
    `sessions      ${c.shared} shared, ${c.dedicated} dedicated, of at most ${server.sessionsMax}; ${c.native} native`,
    `states        ${c.bound} bound, ${c.parked} parked, ${c.waiting} waiting for a worker, ${c.login} logging in`,
    `workers       ${workersWords(c.workers, server.workersMax)}, ${c.freeWorkers} free, in ${c.pools} ${c.pools === 1 ? 'pool' : 'pools'}`,
    `wait          p50 ${waitOf(c.waitP50Ms)}, p99 ${waitOf(c.waitP99Ms)}; ${c.timeouts} sessions ended because they waited too long`,
    `transactions  ${c.transactions}`,
    `memory        ${formatBytes(c.memoryBytes)} of at most ${formatBytes(server.memoryMaxBytes)} for what sessions take along`,
    `counted since ${moment(c.since)}`,
  ]
}

/** Nothing of one that does its work. */
function formatDispatchers(server: SharedServer): string[] {
  const count = server.dispatchers?.length ?? 1
  const faults = server.counts || count > 1 ? dispatcherFaultWords(server) : []
  if (count === 1 && faults.length === 0) return []
  const unknown = server.dispatchers?.filter((d) => d.state === 'running' && d.active === null).length ?? 0
  return [
    `dispatchers   ${[
      `${count}`,
      ...faults,
      ...(unknown > 0
        ? [`whether ${unknown === count ? 'they do' : `${unknown} of them do`} anything is not known yet`]
        : []),
    ].join('; ')}`,
  ]
}

const formatPinned = ({ pinned }: SharedServer): string[] =>
  pinned.length === 0
    ? []
    : [
        `\n${table(
          ['pinned by', 'sessions', 'advice'],
          pinned.map((p) => [p.reason, p.sessions, pinnedAdvice(p.reason)]),
        )}`,
      ]

function formatPools({ pools }: SharedServer): string[] {
  // which of several dispatchers has it
  const several = pools.some((p) => (p.dispatcher ?? 1) > 1)
  return pools.length === 0
    ? []
    : [
        `\n${table(
          [
            'database',
            'user',
            ...(several ? ['dispatcher'] : []),
            'sessions',
            'workers',
            'free',
            'waiting',
            'dedicated',
            'mean wait',
            'transactions',
          ],
          pools.map((p) => [
            p.database,
            p.user,
            ...(several ? [p.dispatcher ?? null] : []),
            p.sessions,
            p.workers,
            p.freeWorkers,
            p.waiting,
            p.dedicated,
            p.meanWaitMs === null ? null : formatWait(p.meanWaitMs),
            p.transactions,
          ]),
        )}`,
      ]
}

/** What a person reads of Shared Server; that it is off, or unknown, is said in words and never as zeros. */
export function formatConnections(
  { name, connection, remoteAccess }: Asked,
  server: SharedServer | null,
): string {
  if (server === null)
    return 'Unknown: its engine has no Shared Server, or its database postgres lacks the extension shared_server.'
  const state = sharedServerState(server)
  const words = sharedServerWords(server)
  if (state === 'off')
    return [
      `Shared Server is off: ${words.meaning}`,
      `"./floe setting set ${name} polar_ss_port=PORT polar_enable_shared_server=on" and a restart turn it on.`,
      ...SHARED_SERVER_LIMITS,
    ].join('\n')
  return [
    `state         ${words.title}: ${words.meaning}`,
    `port          ${server.port}`,
    ...(connection && server.port !== null && state !== 'down'
      ? [
          `connect       ${sharedConnection(connection, { ...server, port: server.port }, remoteAccess).forms.psql}`,
        ]
      : []),
    ...(server.tls
      ? ['tls           on: a client that uses it gets a backend of its own; connect with sslmode=disable']
      : []),
    ...formatDispatchers(server),
    ...(server.counts
      ? formatCounts(server, server.counts)
      : [
          `dispatcher    ${server.dispatcher === 'stopped' ? 'its process is stopped by a signal' : 'the engine has none'}; sessions are unknown`,
        ]),
    ...formatPinned(server),
    ...formatPools(server),
  ].join('\n')
}

export function addConnections(instance: Command): void {
  verb(
    instance,
    'connections <name>',
    'show who shares backends in an instance, and who does not and why',
    'Queries the instance for its Shared Server: sessions by mode and state, workers and pools, waits for a worker since the start, and why sessions are pinned, with what can be done about it.',
  ).action(async (name: string, { json }: Verb) => {
    const client = openConsole()
    const instance = await findInstance(client, name)
    const seen = await client.trpc.sharedServer.read.query({ instanceId: instance.instanceId })
    printResult(json, seen, () => formatConnections(instance, seen.sharedServer))
  })
}
