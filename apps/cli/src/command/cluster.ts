import {
  AutomaticFailover,
  apartOf,
  apartTitle,
  type CommitMode,
  commitModes,
  commitModeWords,
  doubtSentences,
  exactBytes,
  fault,
  IsolatedPrimary,
  type OperationId,
  proofSentence,
  recoverWords,
  shownRole,
  standbySeenOf,
  switchoverProof,
  Verdict,
} from '@floe/domain'
import { type Command, InvalidArgumentError } from 'commander'
import { z } from 'zod'
import { submitOnce } from '../console/submit-once'
import { waitForOperation } from '../console/wait-for-operation'
import { duration, printResult, table } from '../output'
import { type ClusterDetail, findCluster, memberNamed } from './find-cluster'
import { openConsole } from './find-instance'
import { addClusterSetting } from './setting'
import { oneOf, type Submitting, submittingVerb, verb, wholeNumber } from './verb'

type Verb = { json?: boolean }

const bytes = (value: number | null | undefined) =>
  value === null || value === undefined ? null : exactBytes(value)

/** Waits unless ordered not to, and prints how it ended. */
export async function carryOut(
  client: ReturnType<typeof openConsole>,
  { operationId }: { operationId: OperationId },
  options: Submitting,
  done: (result: Record<string, unknown>) => string,
): Promise<void> {
  const operation = options.wait ? await waitForOperation(client, operationId) : null
  const result = operation?.result ?? null
  printResult(options.json, { operationId, state: operation?.state ?? 'queued', result }, () =>
    operation === null ? `Operation ${operationId} was started.` : done(result ?? {}),
  )
}

function formatCluster(detail: ClusterDetail): string {
  const { cluster, waiting, connections, candidates, openOperation } = detail
  const primary = cluster.members.find((m) => m.instanceId === cluster.primaryInstanceId)
  const members = table(
    [
      'member',
      'role',
      'state',
      'host',
      'sent',
      'written',
      'flushed',
      'replayed',
      'lag',
      'behind',
      'sync',
      'slot',
      'seen',
    ],
    cluster.members.map((m) => {
      const seen = standbySeenOf(primary, m)
      const slot = primary?.replication?.slots.find((s) => s.name === `floe_${m.name.replaceAll('-', '_')}`)
      const candidate = candidates.failover.find((c) => c.instanceId === m.instanceId)
      return [
        m.name,
        shownRole(m),
        m.hostState === 'online' ? m.state : `${m.state} (${m.hostState})`,
        m.hostName,
        seen?.sentLsn ?? (m === primary ? (m.replication?.endLsn ?? null) : null),
        seen?.writtenLsn,
        seen?.flushedLsn,
        seen?.replayedLsn,
        bytes(candidate?.lagBytes),
        seen?.replayLagMs == null ? null : duration(seen.replayLagMs),
        seen?.syncState ?? (m === primary ? ' ' : null),
        slot ? (slot.active ? 'active' : 'inactive') : m === primary ? ' ' : 'none',
        m.ageMs === null ? 'never' : `${duration(m.ageMs)} ago`,
      ]
    }),
  )
  const names = primary?.replication?.synchronousStandbyNames
  return [
    `cluster       ${cluster.name}`,
    `commits       ${cluster.commitMode}: ${commitModeWords[cluster.commitMode].waits}`,
    `wait for      ${names ? names : 'no standby (asynchronous)'}`,
    ...(waiting
      ? [
          `COMMITS WAIT  ${waiting.connected} of ${waiting.asked} synchronous standbys are connected; ${waiting.waiting} sessions wait.`,
          `              Start or rejoin a standby, create another one, or run "./floe cluster synchronous ${cluster.name} --off".`,
        ]
      : []),
    `to write      ${connections?.primary.psql ?? '–'}`,
    `to read       ${connections?.reads.psql ?? '–'}`,
    ...(openOperation ? [`operation     ${openOperation.kind} ${openOperation.operationId}`] : []),
    '',
    members,
  ].join('\n')
}

function addLook(cluster: Command): void {
  verb(cluster, 'list', 'list the clusters').action(async ({ json }: Verb) => {
    const { clusters } = await openConsole().trpc.cluster.list.query()
    printResult(json, clusters, () =>
      table(
        ['name', 'primary', 'state', 'members', 'streaming', 'commits wait for', 'commit mode', ''],
        clusters.map((c) => [
          c.name,
          c.primary?.name,
          c.primary?.state,
          c.members,
          c.streaming,
          c.synchronous || 'no standby',
          c.commitMode,
          c.waiting ? 'COMMITS WAIT' : ' ',
        ]),
      ),
    )
  })
  verb(
    cluster,
    'show <name>',
    'show a cluster: members, positions, lag, candidates',
    'Shows a cluster, by its name or that of a member.',
  ).action(async (name: string, { json }: Verb) => {
    const detail = await findCluster(openConsole(), name)
    printResult(json, detail, () => formatCluster(detail))
  })
  verb(
    cluster,
    'connect <name>',
    'print how to connect to whichever member is the primary',
    'Prints connection strings, without a password, that find the primary (with --reads, a standby).',
  )
    .option('--reads', 'the connection for reads')
    .action(async (name: string, { json, reads }: Verb & { reads?: boolean }) => {
      const { connections } = await findCluster(openConsole(), name)
      const forms = reads ? connections?.reads : connections?.primary
      if (!forms)
        throw fault('cluster.no_address', 'no address of a member is known', {
          hint: 'Check that their hosts answer: "./floe host list".',
        })
      printResult(json, forms, () =>
        Object.entries(forms)
          .map(([form, text]) => `${form}:\n  ${text.replaceAll('\n', '\n  ')}`)
          .join('\n'),
      )
    })
}

/** `12345` or `unknown`; anything rounded is refused. */
function acceptedLoss(text: string): number | 'unknown' {
  if (text === 'unknown') return 'unknown'
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError('It must be a whole number of bytes, or "unknown".')
  return Number(text)
}

function addTakeovers(cluster: Command): void {
  submittingVerb(
    cluster,
    'switchover <name>',
    'promote a standby in place of the running primary',
    'Promotes a standby, only once it has replayed all WAL; the former primary becomes its standby. With --check it only lists the candidates and the stages.',
  )
    .option('--to <member>', 'the standby to promote (default: the best candidate)')
    .option('--check', 'only show the candidates and the stages')
    .option('--no-wait', 'do not wait for the operation to end')
    .action(async (name: string, options: Submitting & { to?: string; check?: boolean }) => {
      const client = openConsole()
      const detail = await findCluster(client, name)
      if (options.check) return printCandidates(detail, 'switchover', options.json)
      const to = options.to === undefined ? undefined : memberNamed(detail, options.to).instanceId
      const { clusterId } = detail.cluster
      const started = await submitOnce(options.idempotencyKey, (idempotencyKey) =>
        client.trpc.cluster.switchover.mutate({ clusterId, instanceId: to, idempotencyKey }),
      )
      await carryOut(client, started, options, ({ leftOut, ...result }) =>
        [
          `Another member of cluster "${name}" is the primary.`,
          ...(switchoverProof(result, options.to ?? 'the new primary') ?? []),
          ...leftOutLines(leftOut),
        ].join('\n'),
      )
    })
  submittingVerb(
    cluster,
    'failover <name>',
    'promote a standby in place of a lost primary',
    'Fences the former primary and promotes a standby. Prints the proof that no acknowledged commit is lost; where that cannot be proven, the loss has to be accepted.',
  )
    .option('--to <member>', 'the standby to promote (default: chosen once positions are final)')
    .option('--check', 'only show the candidates and the stages')
    .option('--accept-loss <bytes>', 'bytes of WAL that may be lost at most, or "unknown"', acceptedLoss)
    .option(
      '--unreachable-host <name>',
      'name of an unreachable host whose instance cannot be fenced now: the primary’s, or one that may have been promoted; may be repeated',
      (name: string, before: string[] = []) => [...before, name],
    )
    .option('--no-wait', 'do not wait for the operation to end')
    .action(
      async (
        name: string,
        options: Submitting & {
          to?: string
          check?: boolean
          acceptLoss?: number | 'unknown'
          unreachableHost?: string[]
        },
      ) => {
        const client = openConsole()
        const detail = await findCluster(client, name)
        if (options.check) return printCandidates(detail, 'failover', options.json)
        const to = options.to === undefined ? undefined : memberNamed(detail, options.to).instanceId
        const [unreachableHost, ...alsoUnreachable] = options.unreachableHost ?? []
        const started = await submitOnce(options.idempotencyKey, (idempotencyKey) =>
          client.trpc.cluster.failover.mutate({
            clusterId: detail.cluster.clusterId,
            instanceId: to,
            acceptLoss: options.acceptLoss ?? null,
            unreachableHost: unreachableHost ?? null,
            alsoUnreachable,
            idempotencyKey,
          }),
        )
        await carryOut(client, started, options, ({ verdict, fenced, leftOut, notSeen }) =>
          [
            `Another member of cluster "${name}" is the primary.`,
            ...verdictLines(verdict),
            ...leftOutLines(leftOut),
            ...notSeenLines(notSeen),
            fenced === false
              ? 'The former primary is not fenced: its host is unreachable. It is fenced as soon as the host answers.'
              : 'The former primary is fenced. Rejoin it with "./floe standby rejoin".',
          ].join('\n'),
        )
      },
    )
}

const LeftOut = z.array(z.object({ name: z.string(), why: z.string() })).catch([])
/** Standbys that commits do not wait for though they were asked to. */
const leftOutLines = (stored: unknown): string[] =>
  LeftOut.parse(stored).map(({ name, why }) => `Commits do not wait for "${name}": ${why}.`)

const NotSeen = z.array(z.string()).catch([])
const notSeenLines = (stored: unknown): string[] =>
  NotSeen.parse(stored).map(
    (name) => `"${name}" was not reported to follow: rejoin it with "./floe standby rejoin ${name}".`,
  )

/** What a failover lost, with the proof where there is one. */
function verdictLines(stored: unknown): string[] {
  const { data: verdict } = Verdict.safeParse(stored)
  // of an operation that was carried out by a controller of before
  if (!verdict) return ['The loss was not judged.']
  const asked = verdict.kind === 'proven' ? verdict.proof.asked : verdict.asked
  return [
    ...(verdict.kind === 'proven'
      ? [proofSentence(verdict.proof), ...verdict.proof.because]
      : [
          verdict.kind === 'bounded'
            ? `At most ${exactBytes(verdict.lossBytes)} of WAL is lost.`
            : 'The amount of lost WAL is unknown.',
          ...verdict.doubts.map(doubtSentences),
        ]),
    table(
      ['member', 'host', 'answer', 'timeline', 'WAL up to', 'more than the candidate'],
      asked.map((a) => [
        a.name,
        a.hostName,
        a.state,
        a.end ? String(a.end.timeline) : 'unknown',
        a.end?.lsn ?? 'unknown',
        a.beyondBytes === null ? 'unknown' : bytes(a.beyondBytes),
      ]),
    ),
  ]
}

function printCandidates(
  detail: ClusterDetail,
  way: 'switchover' | 'failover',
  json: boolean | undefined,
): void {
  const candidates = detail.candidates[way]
  printResult(json, { candidates, stages: detail.stages[way] }, () =>
    [
      table(
        ['candidate', 'host', 'behind', 'expected loss', 'blockers'],
        candidates.map((c) => [
          c.name,
          c.hostName,
          bytes(c.lagBytes),
          c.expectedLossBytes === null ? 'unknown' : bytes(c.expectedLossBytes),
          c.blockers.map((b) => b.message).join('; ') || ' ',
        ]),
      ),
      '',
      table(
        ['stage', 'clients can write'],
        detail.stages[way].map((s) => [s.title, s.clientsCanWrite ? 'yes' : 'no']),
      ),
    ].join('\n'),
  )
}

const commitMode = oneOf(...commitModes)

function addSynchronous(cluster: Command): void {
  submittingVerb(
    cluster,
    'synchronous <name> [standbys...]',
    'configure synchronous replication',
    `Names the synchronous standbys. With --database or --role it sets only synchronous_commit there. Modes:\n${commitModes
      .map((m) => `  ${m}: ${commitModeWords[m].waits} May lose: ${commitModeWords[m].mayLose}`)
      .join('\n')}`,
  )
    .option('--first <n>', 'wait for the first n of the list that are connected', wholeNumber(1, 8))
    .option('--any <n>', 'wait for any n of the list', wholeNumber(1, 8))
    .option('--off', 'wait for no standby')
    .option('--strict', 'keep commits waiting if a failover leaves too few standbys')
    .option('--mode <mode>', 'synchronous_commit', commitMode)
    .option('--database <name>', 'set the mode for a database only')
    .option('--role <name>', 'set the mode for a role only')
    .option('--reset', 'remove the override of that database or role')
    .option('--no-wait', 'do not wait for the operation to end')
    .action(
      async (
        name: string,
        standbys: string[],
        options: Submitting & {
          first?: number
          any?: number
          off?: boolean
          strict?: boolean
          mode?: CommitMode
          database?: string
          role?: string
          reset?: boolean
        },
      ) => {
        const client = openConsole()
        const detail = await findCluster(client, name)
        const { clusterId } = detail.cluster
        if (options.database !== undefined || options.role !== undefined) {
          if ((options.mode === undefined) === (options.reset !== true))
            throw fault('usage.commit_mode', 'either --mode or --reset has to be given')
          const started = await submitOnce(options.idempotencyKey, (idempotencyKey) =>
            client.trpc.cluster.commitMode.mutate({
              clusterId,
              database: options.database ?? null,
              role: options.role ?? null,
              commitMode: options.mode ?? null,
              idempotencyKey,
            }),
          )
          return carryOut(client, started, options, () => 'It holds for new sessions.')
        }
        if (!options.off && standbys.length === 0 && options.mode === undefined)
          throw fault('usage.no_standbys', 'neither standbys nor a mode was given', {
            hint: `Name standbys of cluster "${name}", or give --off or --mode.`,
          })
        const current = detail.cluster.synchronous
        const synchronous = options.off
          ? null
          : standbys.length === 0
            ? current
            : {
                method: options.any === undefined ? ('first' as const) : ('any' as const),
                count: options.any ?? options.first ?? 1,
                instanceIds: standbys.map((s) => memberNamed(detail, s).instanceId),
                strict: options.strict === true,
              }
        const started = await submitOnce(options.idempotencyKey, (idempotencyKey) =>
          client.trpc.cluster.synchronous.mutate({
            clusterId,
            synchronous,
            commitMode: options.mode ?? detail.cluster.commitMode,
            idempotencyKey,
          }),
        )
        await carryOut(client, started, options, ({ standbyNames, waiting, leftOut }) =>
          [
            standbyNames ? `Commits wait for ${standbyNames}.` : 'Commits wait for no standby.',
            ...leftOutLines(leftOut),
            ...(waiting === true ? ['Too few of them are connected: commits wait now.'] : []),
          ].join('\n'),
        )
      },
    )
}

function addCommitModes(cluster: Command): void {
  verb(
    cluster,
    'commit-modes <name>',
    'list overrides of synchronous_commit per database and role',
    'Lists synchronous_commit as set for databases and roles, including settings made without Floe. "./floe cluster synchronous" changes it.',
  ).action(async (name: string, { json }: Verb) => {
    const client = openConsole()
    const { cluster: found } = await findCluster(client, name)
    const { commitModes: scopes } = await client.trpc.cluster.commitModes.query({
      clusterId: found.clusterId,
    })
    printResult(json, scopes, () =>
      table(
        ['database', 'role', 'commit mode'],
        [
          ...scopes.map((s) => [s.database ?? 'every', s.role ?? 'every', s.commitMode]),
          ['every', 'every', `${found.commitMode} (the cluster’s default)`],
        ],
      ),
    )
  })
}

function addAutomatic(cluster: Command): void {
  submittingVerb(
    cluster,
    'automatic <name> [on|off]',
    'turn automatic failover on or off, or show what it requires',
    'Turns automatic failover on or off; without either word it shows the configuration, the last decision and what prevents a failover. A standby is promoted when the primary’s agent and the standbys agree that the primary is lost. Without the console nothing fails over automatically.',
  )
    .option('--after <seconds>', 'how long both have to report the primary lost', wholeNumber(2, 600))
    .option('--interval <minutes>', 'minimum time between two automatic failovers', wholeNumber(0, 1_440))
    .option(
      '--isolated-after <seconds>',
      'how long neither a standby nor the console reaches the primary before its agent acts',
      wholeNumber(5, 3_600),
    )
    .option(
      '--isolated-primary <action>',
      'what the agent does then: end-clients, read-only or demote',
      oneOf(...IsolatedPrimary.options),
    )
    .option('--no-wait', 'do not wait for the operation to end')
    .action(
      async (
        name: string,
        word: string | undefined,
        options: Submitting & {
          after?: number
          interval?: number
          isolatedAfter?: number
          isolatedPrimary?: IsolatedPrimary
        },
      ) => {
        const client = openConsole()
        const detail = await findCluster(client, name)
        const { clusterId, automatic: current } = detail.cluster
        if (word === undefined)
          return printResult(
            options.json,
            {
              automatic: current ?? null,
              word: detail.cluster.automaticWord ?? null,
              blockers: detail.automaticBlockers,
              shortage: detail.automaticShortage,
            },
            () => formatAutomatic(detail),
          )
        if (word !== 'on' && word !== 'off')
          throw fault('usage.automatic', `"${word}" is neither "on" nor "off"`)
        const { after, interval, isolatedAfter, isolatedPrimary } = options
        const wanted = AutomaticFailover.parse({
          ...current,
          ...(after === undefined ? {} : { afterMs: after * 1_000 }),
          ...(interval === undefined ? {} : { minIntervalMs: interval * 60_000 }),
          ...(isolatedAfter === undefined ? {} : { isolatedAfterMs: isolatedAfter * 1_000 }),
          ...(isolatedPrimary === undefined ? {} : { isolatedPrimary }),
        })
        const automatic = word === 'on' ? wanted : null
        const started = await submitOnce(options.idempotencyKey, (idempotencyKey) =>
          client.trpc.cluster.automatic.mutate({ clusterId, automatic, idempotencyKey }),
        )
        await carryOut(client, started, options, () =>
          automatic === null
            ? `Automatic failover of cluster "${name}" is off.`
            : `Automatic failover of cluster "${name}" is on.`,
        )
      },
    )
}

function formatAutomatic({ cluster, automaticBlockers, automaticShortage }: ClusterDetail): string {
  const { automatic, automaticWord } = cluster
  return [
    automatic
      ? `Automatic failover of cluster "${cluster.name}" is on: after ${automatic.afterMs / 1_000} s, at most once in ${automatic.minIntervalMs / 60_000} minutes. Primary isolated for ${automatic.isolatedAfterMs / 1_000} s: ${automatic.isolatedPrimary}.`
      : `Automatic failover of cluster "${cluster.name}" is off.`,
    ...(automatic && automaticWord ? [`${automaticWord.kind}: ${automaticWord.text}`] : []),
    ...(automatic && !automaticWord && automaticShortage
      ? [`Now: ${doubtSentences(automaticShortage)}`]
      : []),
    ...automaticBlockers.map((b) => `Not safe: ${b.message}. ${b.hint ?? ''}`),
  ].join('\n')
}

function addPageRepair(cluster: Command): void {
  submittingVerb(
    cluster,
    'page-repair <name> [standbys...]',
    'choose the page repair sources',
    'Names the standbys from which the primary fetches pages torn by a crash; with --all (the default of a new cluster) every standby, including later ones. Required before full_page_writes can be off.',
  )
    .option('--all', 'every standby, including later ones')
    .option('--off', 'no standby: refused while the primary runs with full_page_writes off')
    .option('--no-wait', 'do not wait for the operation to end')
    .action(
      async (name: string, standbys: string[], options: Submitting & { all?: boolean; off?: boolean }) => {
        const ways = [options.all, options.off, standbys.length > 0].filter(Boolean).length
        if (ways !== 1)
          throw fault('usage.page_repair', 'standbys, --all or --off must be given', {
            hint: `"./floe instance protection ${name}" shows what protects an instance now.`,
          })
        const client = openConsole()
        const detail = await findCluster(client, name)
        const { clusterId, members, primaryInstanceId } = detail.cluster
        const chosen = standbys.map((s) => memberNamed(detail, s).instanceId)
        const excluded = options.all || options.off ? [] : members.map((m) => m.instanceId)
        const started = await submitOnce(options.idempotencyKey, (idempotencyKey) =>
          client.trpc.cluster.pageRepair.mutate({
            clusterId,
            pageRepair: {
              enabled: !options.off,
              excluded: excluded.filter((id) => id !== primaryInstanceId && !chosen.includes(id)),
            },
            idempotencyKey,
          }),
        )
        await carryOut(client, started, options, ({ repairSources, notHealthy }) => {
          const sources = (repairSources ?? []) as string[]
          const missing = (notHealthy ?? []) as string[]
          return [
            sources.length === 0
              ? 'No page repair sources.'
              : `Page repair sources: ${sources.map((s) => `${s} (${apartOfMember(detail, s)})`).join(', ')}.`,
            ...(missing.length > 0 ? [`Not healthy yet: ${missing.join(', ')}.`] : []),
          ].join('\n')
        })
      },
    )
}

/** What a member does not share with the primary. */
function apartOfMember({ cluster }: ClusterDetail, name: string): string {
  const primary = cluster.members.find((m) => m.instanceId === cluster.primaryInstanceId)
  const apart = apartOf(
    primary,
    { source: name },
    cluster.members.find((m) => m.name === name),
  )
  return apartTitle(apart)
}

function addRenewRoles(cluster: Command): void {
  submittingVerb(
    cluster,
    'renew-roles <name>',
    'replace predictable role names of members that an earlier version created',
    'Gives members that an earlier version created roles with random names, and drops the former roles. Standbys reconnect one after another; nothing is restarted. "./floe up" does this automatically after an update.',
  )
    .option('--no-wait', 'do not wait for the operation to end')
    .action(async (name: string, options: Submitting) => {
      const client = openConsole()
      const { clusterId } = (await findCluster(client, name)).cluster
      const started = await submitOnce(options.idempotencyKey, (idempotencyKey) =>
        client.trpc.cluster.renewRoles.mutate({ clusterId, idempotencyKey }),
      )
      await carryOut(client, started, options, ({ renewed, left }) => {
        const names = (renewed ?? []) as string[]
        return [
          names.length === 0 ? 'All roles are up to date.' : `New roles: ${names.join(', ')}.`,
          ...((left ?? []) as string[]).map((reason) => `Unchanged: ${reason}`),
        ].join('\n')
      })
    })
}

function addRecover(cluster: Command): void {
  submittingVerb(
    cluster,
    'recover <name>',
    'bring back a cluster whose members crashed at once and wait for each other',
    Object.values(recoverWords).join('\n'),
  )
    .requiredOption('--confirm <name>', 'the name of the primary, once more')
    .option(
      '--backup <directory>',
      'base backup on the primary’s host, as pg_basebackup -Fp makes it: gives what is whole on no member',
    )
    .option('--wal <directory>', 'WAL archive there, with the WAL since the backup that the primary lacks')
    .option('--no-wait', 'do not wait for the operation to end')
    .action(
      async (name: string, options: Submitting & { confirm: string; backup?: string; wal?: string }) => {
        const client = openConsole()
        const { clusterId } = (await findCluster(client, name)).cluster
        const started = await submitOnce(options.idempotencyKey, (idempotencyKey) =>
          client.trpc.cluster.recover.mutate({
            clusterId,
            confirmName: options.confirm,
            backupDirectory: options.backup,
            walDirectory: options.wal,
            idempotencyKey,
          }),
        )
        await carryOut(
          client,
          started,
          options,
          ({ recovered, blocks, broughtBytes, left, notStarted, notSeen }) => {
            const lines = [...((left ?? []) as string[]), ...((notStarted ?? []) as string[])]
            return [
              `Cluster "${name}" is recovered: "${String(recovered)}" got ${String(blocks)} pages, ${bytes(Number(broughtBytes))} with the WAL, and gave the primary its own.`,
              ...lines.map((line) => `Not recovered: ${line}`),
              ...notSeenLines(notSeen),
            ].join('\n')
          },
        )
      },
    )
}

export function addCluster(program: Command): void {
  const cluster = program
    .command('cluster')
    .summary('show clusters, switch over, fail over, configure synchronous replication, change settings')
    .description(
      'Clusters: a primary and its standbys. A cluster is named by its own name or that of a member.',
    )
  addLook(cluster)
  addTakeovers(cluster)
  addSynchronous(cluster)
  addAutomatic(cluster)
  addCommitModes(cluster)
  addClusterSetting(cluster)
  addPageRepair(cluster)
  addRenewRoles(cluster)
  addRecover(cluster)
}
