import { tasks } from '@floe/agent-contract'
import {
  apartOf,
  type BlockAddress,
  type ClusterMember,
  type ClusterObserved,
  COPY_RECORD_BYTES,
  type Fault,
  fault,
  formatBytes,
  PIECE_BLOCKS_MAX,
  PIECE_WAL_BYTES,
} from '@floe/domain'
import { type Carried, copyStep } from '../copy-step'
import { refuseStandby } from '../guards'
import { controlOf, memberOf, primaryMember } from '../instance-control'
import { giversOf, judgeRecovery, type ListedMember, type Recovery, wholeNowhere } from '../judge-recovery'
import { observeFollowing } from '../observe-following'
import {
  defineOperation,
  fail,
  type Guarded,
  type MemberTask,
  next,
  type StepContext,
  type UndoTask,
} from '../step'
import { taskStep } from '../task-step'
import { tasksStep } from '../tasks-step'

/** A standby whose host does not answer for so long is left out. */
const SILENT_MS = 15_000
/** Recovery replays WAL, and fetches pages, before it answers. */
const START_MS = 3_600_000

/** A base backup is copied, and all WAL since it replayed. */
const RESTORE_MS = 24 * 3_600_000

type Context = StepContext<'recover-cluster'>
type Results = Pick<Context, 'results'>

const standbysOf = (cluster: ClusterObserved) => cluster.members.filter((m) => m.memberRole === 'standby')

const faultOf = (result: unknown) => (result as { fault?: Fault } | undefined)?.fault ?? null

const stopId = (m: ClusterMember) => `stop.${m.name}`
const listId = (m: ClusterMember) => `list.${m.name}`

/** Standbys that were stopped: of the others nothing is known, and nothing is done to them. */
const stopped = ({ results }: Results, cluster: ClusterObserved) =>
  standbysOf(cluster).filter((m) => {
    const result = results.stop?.[stopId(m)]
    return result !== undefined && faultOf(result) === null
  })

/** Standbys that take part, and those that do not, with the reason. */
const leftOut = ({ results }: Results, cluster: ClusterObserved): string[] =>
  standbysOf(cluster).flatMap((m) => {
    const why = faultOf(results.stop?.[stopId(m)]) ?? faultOf(results.list?.[listId(m)])
    return why ? [`"${m.name}": ${why.message}`] : []
  })

function listed({ results }: Results, cluster: ClusterObserved, member: ClusterMember): ListedMember | null {
  const answer = tasks['list-torn'].result.safeParse(results.list?.[listId(member)])
  if (!answer.success) return null
  const apart = apartOf(primaryMember(cluster), { source: member.name }, member)
  return { instanceId: member.instanceId, name: member.name, apart, ...answer.data }
}

const hasBackup = ({ input }: Pick<Context, 'input'>) => input.backupDirectory !== undefined

const recoveryOf = ({ results }: Results) => results.judge?.recovery as Recovery

const listOf = (context: Results, cluster: ClusterObserved, member: ClusterMember) => {
  const list = listed(context, cluster, member)?.list
  if (!list) throw fault('recover.no_list', `instance "${member.name}" has no list of torn pages`)
  return list
}

const chosen = (context: Results, cluster: ClusterObserved) =>
  memberOf(cluster, recoveryOf(context).instanceId)

const onHost = (m: ClusterMember, id: string, task: MemberTask['task']): MemberTask => ({
  id,
  hostId: m.hostId,
  hostName: m.hostName,
  task,
})

/** While a member runs, the others take what they need from it by themselves. */
async function refuseRunning(asked: Guarded<'recover-cluster'>): Promise<void> {
  await refuseStandby(asked)
  if (asked.input.walDirectory !== undefined && !hasBackup(asked))
    throw fault('recover.no_backup', 'a WAL archive is of use only with a base backup', {
      hint: 'Name the base backup, too, or leave both out.',
    })
  const cluster = await asked.readCluster()
  if (!cluster) return
  const primary = primaryMember(cluster)
  const { name } = primary
  if (standbysOf(cluster).length === 0)
    throw fault('recover.no_standby', `cluster "${cluster.name}" has no standby`, {
      detail: 'Whole pages come from another member.',
      hint: `Start "${name}". Where it does not start, restore a base backup with WAL up to its end.`,
    })
  if (primary.hostState !== 'online')
    throw fault('recover.host_silent', `host "${primary.hostName}" of the primary does not answer`, {
      hint: 'What only its disk has is needed. Bring the host back, or fail over.',
    })
  const running = cluster.members.find((m) => m.memberRole !== 'fenced' && m.state === 'running')
  if (!running) return
  const isPrimary = running.instanceId === primary.instanceId
  throw fault('recover.member_runs', `instance "${running.name}" runs`, {
    detail:
      'A cluster is recovered while none of its members runs: each then holds what it had when it crashed.',
    hint: isPrimary
      ? 'The primary needs nothing. A standby that does not start can be started again, or rejoined.'
      : `Start "${name}": it takes its torn pages from "${running.name}". If it does not start because "${running.name}" lacks WAL that only the primary’s disk has, run "./floe instance stop ${running.name} --mode immediate" and recover the cluster again.`,
  })
}

function walPieces(context: Context, cluster: ClusterObserved): Omit<Carried, 'first'> {
  const { timeline, segmentBytes, firstSegment, walBytes } = recoveryOf(context)
  const [from, to] = [primaryMember(cluster), chosen(context, cluster)]
  const { control } = listOf(context, cluster, from)
  const stretch = (number: number) => {
    const at = number * PIECE_WAL_BYTES
    return { timeline, segment: firstSegment + Math.floor(at / segmentBytes), offset: at % segmentBytes }
  }
  const lengthOf = (number: number) => Math.min(PIECE_WAL_BYTES, walBytes - number * PIECE_WAL_BYTES)
  return {
    to,
    pieceBytes: Array.from({ length: Math.ceil(walBytes / PIECE_WAL_BYTES) }, (_, number) =>
      lengthOf(number),
    ),
    from: () => from,
    read: (number) => ({
      kind: 'read-copies',
      instanceId: from.instanceId,
      control,
      piece: {
        kind: 'wal',
        ...stretch(number),
        segmentBytes,
        length: lengthOf(number),
      },
    }),
    write: (number, { data, crc32 }) => ({
      kind: 'write-copies',
      instanceId: to.instanceId,
      piece: { kind: 'wal', ...stretch(number), data, crc32 },
    }),
    damaged: (blocks) => lost(context, cluster, blocks),
  }
}

/** Blocks that follow each other in a standby's list, and whose disk they are read from; with a backup on the primary's host. */
type PagePiece = { from: ClusterMember; first: number; blocks: BlockAddress[]; restored: boolean }

function piecesOf(context: Context, cluster: ClusterObserved): PagePiece[] {
  const primary = listed(context, cluster, primaryMember(cluster))
  const standbys = stopped(context, cluster).flatMap((m) => listed(context, cluster, m) ?? [])
  const member = standbys.find((m) => m.instanceId === recoveryOf(context).instanceId)
  const backup = hasBackup(context)
  const given = primary && member ? giversOf(primary, member, backup ? [] : standbys) : null
  const pieces: PagePiece[] = []
  for (const [number, { block, from }] of (given ?? []).entries()) {
    // the lists are those that were judged
    if (from === null && !backup)
      throw fault('recover.no_list', 'the lists of torn pages are not those that were compared')
    const instanceId = from?.instanceId ?? cluster.primaryInstanceId
    const restored = from === null
    const last = pieces.at(-1)
    if (
      last?.from.instanceId === instanceId &&
      last.restored === restored &&
      last.blocks.length < PIECE_BLOCKS_MAX
    )
      last.blocks.push(block)
    else pieces.push({ from: memberOf(cluster, instanceId), first: number, blocks: [block], restored })
  }
  return pieces
}

function pagePieces(context: Context, cluster: ClusterObserved): Carried {
  const to = chosen(context, cluster)
  const pieces = piecesOf(context, cluster)
  const piece = (number: number) => pieces[number] as PagePiece
  return {
    to,
    pieceBytes: pieces.map(({ blocks }) => blocks.length * COPY_RECORD_BYTES),
    from: (number) => piece(number).from,
    read: (number) => ({
      kind: 'read-copies',
      instanceId: piece(number).from.instanceId,
      control: listOf(context, cluster, piece(number).from).control,
      piece: {
        kind: 'pages',
        blocks: piece(number).blocks,
        // with a backup also what only turns out to be damaged when it is read
        ...(hasBackup(context)
          ? { restored: { first: piece(number).first, all: piece(number).restored } }
          : {}),
      },
    }),
    write: (number, { data, crc32 }) => ({
      kind: 'write-copies',
      instanceId: to.instanceId,
      piece: { kind: 'pages', first: piece(number).first, data, crc32 },
    }),
    damaged: (damaged) => lost(context, cluster, damaged),
  }
}

const lost = (context: Context, cluster: ClusterObserved, blocks: BlockAddress[]) =>
  wholeNowhere(
    cluster.name,
    primaryMember(cluster).name,
    recoveryOf(context).name,
    recoveryOf(context).endLsn,
    blocks,
  )

const removal = (m: ClusterMember, after: string): UndoTask => ({
  after,
  ...onHost(m, 'remove', {
    kind: 'write-copies',
    instanceId: m.instanceId,
    piece: { kind: 'remove' },
  }),
})

/**
 * Brings back a cluster whose members crashed at once and wait for each other
 * (docs/decisions/2026-11-25-both-torn-recover.md). Nothing is written to the primary but what its own recovery writes. What is
 * whole on no member a base backup gives, where one is named: it is restored beside the primary.
 */
export const recoverCluster = defineOperation('recover-cluster', {
  guard: refuseRunning,
  retryAfresh: true,
  plan: ({ backupDirectory }) => [
    { name: 'stop', title: 'Stop every member and keep it from being started' },
    { name: 'list', title: 'List the torn pages of every member' },
    { name: 'judge', title: 'Compare what the members have' },
    ...(backupDirectory === undefined
      ? []
      : [
          {
            name: 'restore' as const,
            title: 'Restore the base backup beside the primary, and keep pages of it',
          },
        ]),
    { name: 'wal', title: 'Bring the primary’s WAL to a standby' },
    {
      name: 'pages',
      title: `Bring whole pages of the primary, or of ${backupDirectory === undefined ? 'another standby' : 'the base backup'}, to it`,
    },
    { name: 'origin', title: 'Complete the copies' },
    { name: 'standby', title: 'Start the standby with them' },
    { name: 'primary', title: 'Start the primary, which takes its torn pages from the standby' },
    { name: 'others', title: 'Start the other standbys' },
    { name: 'tidy', title: 'Remove the copies' },
    ...(backupDirectory === undefined
      ? []
      : [{ name: 'drop' as const, title: 'Remove what was kept of the base backup' }]),
    { name: 'observe', title: 'Wait until the standbys follow' },
  ],
  steps: {
    stop: tasksStep({
      deadlineMs: 120_000,
      // what a stop in order does would take away what a recovery has to look at
      tasks: (_context, cluster) =>
        [primaryMember(cluster), ...standbysOf(cluster)].map((m) =>
          onHost(m, stopId(m), controlOf(cluster).stop(m.instanceId, 'immediate')),
        ),
      optional: (task, fault, context) =>
        fault.code === 'agent.unreachable' &&
        'instanceId' in task.task &&
        task.task.instanceId !== context.input.instanceId,
      toleranceMs: SILENT_MS,
    }),
    list: tasksStep({
      deadlineMs: START_MS,
      tasks: (context, cluster) =>
        [primaryMember(cluster), ...stopped(context, cluster)].map((m) =>
          onHost(m, listId(m), { kind: 'list-torn', instanceId: m.instanceId }),
        ),
      optional: (task, _fault, context) =>
        'instanceId' in task.task && task.task.instanceId !== context.input.instanceId,
      toleranceMs: SILENT_MS,
    }),
    judge: {
      deadlineMs: 60_000,
      async run(context) {
        const cluster = await context.readCluster()
        const primary = listed(context, cluster, primaryMember(cluster))
        if (!primary)
          return fail({ code: 'agent.bad_result', message: 'the primary’s list was not understood' })
        const standbys = stopped(context, cluster).flatMap((m) => listed(context, cluster, m) ?? [])
        const judged = judgeRecovery(cluster.name, primary, standbys, { backup: hasBackup(context) })
        const without = leftOut(context, cluster).map((text) => ({ text: `left out: ${text}` }))
        if (judged.kind === 'refused') return fail(judged.fault, { log: without })
        const { recovery } = judged
        const { name, blocks, walBytes, pageBytes, endLsn, others, restored } = recovery
        const ofOthers = [
          ...others.map((other) => ({ from: `"${other.name}"`, blocks: other.blocks })),
          ...(hasBackup(context) ? [{ from: 'the base backup', blocks: restored }] : []),
        ]
          .map((other) => `; ${other.blocks.toLocaleString('en-US')} of the pages come from ${other.from}`)
          .join('')
        return next(
          {
            recovery,
            recovered: name,
            blocks,
            broughtBytes: pageBytes + walBytes,
            left: leftOut(context, cluster),
          },
          {
            log: [
              ...without,
              {
                text: `"${name}" gets ${blocks.toLocaleString('en-US')} pages (${formatBytes(pageBytes)}) and ${formatBytes(walBytes)} of WAL up to ${endLsn} from "${primary.name}"${ofOthers}; "${primary.name}" then takes ${(primary.list?.blocks ?? 0).toLocaleString('en-US')} torn pages from it`,
              },
            ],
          },
        )
      },
    },
    restore: taskStep('restore-pages', {
      deadlineMs: RESTORE_MS,
      on: (_context, cluster) => primaryMember(cluster),
      task: (context, cluster) => {
        const { redo, blocks, relations } = listOf(context, cluster, chosen(context, cluster))
        return {
          kind: 'restore-pages',
          instanceId: cluster.primaryInstanceId,
          control: listOf(context, cluster, primaryMember(cluster)).control,
          backupDirectory: context.input.backupDirectory as string,
          walDirectory: context.input.walDirectory ?? null,
          redo,
          blocks,
          relations,
        }
      },
    }),
    wal: copyStep(async (context) => {
      const cluster = await context.readCluster()
      const { pageBytes, walBytes } = recoveryOf(context)
      return {
        ...walPieces(context, cluster),
        first: {
          kind: 'write-copies',
          instanceId: chosen(context, cluster).instanceId,
          piece: { kind: 'begin', bytes: pageBytes + walBytes },
        },
      }
    }),
    pages: copyStep(async (context) => pagePieces(context, await context.readCluster())),
    origin: taskStep('write-copies', {
      deadlineMs: 60_000,
      on: chosen,
      task: (context, cluster) => ({
        kind: 'write-copies',
        instanceId: chosen(context, cluster).instanceId,
        piece: { kind: 'origin', header: listOf(context, cluster, primaryMember(cluster)).header },
      }),
    }),
    standby: taskStep('start-instance', {
      deadlineMs: START_MS,
      on: chosen,
      task: (context, cluster) => controlOf(cluster).start(chosen(context, cluster).instanceId),
    }),
    primary: taskStep('start-instance', {
      deadlineMs: START_MS,
      on: (_context, cluster) => primaryMember(cluster),
      task: (_context, cluster) => controlOf(cluster).start(cluster.primaryInstanceId),
    }),
    others: tasksStep({
      deadlineMs: START_MS,
      tasks: (context, cluster) =>
        stopped(context, cluster)
          .filter((m) => m.instanceId !== recoveryOf(context).instanceId)
          .map((m) => onHost(m, `start.${m.name}`, controlOf(cluster).start(m.instanceId))),
      optional: () => true,
      toleranceMs: SILENT_MS,
      result: (results) => ({
        notStarted: Object.entries(results).flatMap(([id, result]) => {
          const why = faultOf(result)
          return why ? [`"${id.replace(/^start\./, '')}": ${why.message}`] : []
        }),
      }),
    }),
    tidy: taskStep('write-copies', {
      deadlineMs: 120_000,
      on: chosen,
      task: (context, cluster) => ({
        kind: 'write-copies',
        instanceId: chosen(context, cluster).instanceId,
        piece: { kind: 'remove' },
      }),
    }),
    drop: taskStep('drop-restored-pages', {
      deadlineMs: 120_000,
      on: (_context, cluster) => primaryMember(cluster),
      task: (_context, cluster) => ({
        kind: 'drop-restored-pages',
        instanceId: cluster.primaryInstanceId,
      }),
    }),
    observe: observeFollowing((context, cluster) => stopped(context, cluster).map((m) => m.instanceId)),
  },
  // a standby that has come up stays: it has all that the primary had, and a primary takes its pages from it
  undo: (context, cluster) => {
    if (!recoveryOf(context)) return []
    const [primary, standby] = [primaryMember(cluster), chosen(context, cluster)]
    const stop = (m: ClusterMember, after: string): UndoTask => ({
      after,
      ...onHost(m, stopId(m), controlOf(cluster).stop(m.instanceId, 'immediate')),
    })
    return [
      ...(context.results.primary?.postmasterPid === undefined ? [stop(primary, 'primary')] : []),
      ...(context.results.standby?.postmasterPid === undefined ? [stop(standby, 'standby')] : []),
      removal(standby, 'wal'),
      ...(hasBackup(context)
        ? [
            {
              after: 'restore',
              ...onHost(primary, 'drop', {
                kind: 'drop-restored-pages',
                instanceId: primary.instanceId,
              } as const),
            },
          ]
        : []),
    ]
  },
})
