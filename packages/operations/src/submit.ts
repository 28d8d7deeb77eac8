import { randomUUID } from 'node:crypto'
import {
  type Actor,
  askToCancel,
  type Database,
  findOpenOperation,
  findOperationByKey,
  hastenOperation,
  hostNotFound,
  hostRevoked,
  type InstanceView,
  insertAuditEvent,
  insertInstance,
  insertOperation,
  insertStandby,
  inTransaction,
  listHosts,
  markNeverMade,
  readCluster,
  readClusterOf,
  readOperationForRetry,
  readStepForCancel,
  reviveStandby,
  setInstanceIntent,
  showInstance,
  sqlError,
  type Transaction,
} from '@floe/db'
import {
  type ClusterObserved,
  clusterSettingBlockers,
  endedOperationStates,
  FaultError,
  fault,
  type InstanceIntent,
  type OperationInput,
  type OperationKind,
  type OperationState,
  ofWholeCluster,
  operationInputs,
  operationTitles,
  type PageRepair,
  passingBlockers,
  pointsOfNoReturn,
  primaryOf,
  repairSourcesOf,
} from '@floe/domain'

export type SubmitInput<K extends OperationKind> = {
  kind: K
  input: OperationInput<K>
  actor: Actor
  /** The same key answers the same operation, however often it is sent. */
  idempotencyKey?: string | null | undefined
  /** The audit row written with it; `action` defaults to `noun.verb` of the kind, e.g. `instance.create`. */
  audit?: { action?: string | undefined; ipAddress?: string | null | undefined } | undefined
  /** The host a new instance is made on; left out, the one that answers and has the most free ports. */
  hostId?: string | undefined
}

export type Submitted<K extends OperationKind> = {
  operationId: string
  instanceId: string
  /** What was stored: of the first call where the idempotency key was seen before. */
  input: OperationInput<K>
  /** False when the idempotency key answered an earlier operation, or one that is open was hastened instead. */
  created: boolean
}

/** Another operation on the instance, or on its cluster, has not ended. `blockingOperationId` is the one to wait for or to cancel. */
export class OperationConflict extends FaultError {
  readonly blockingOperationId: string
  constructor(
    blocking: { operationId: string; kind: OperationKind; state: OperationState },
    instanceName: string,
  ) {
    super({
      code: 'operation.conflict',
      message: `another operation on instance "${instanceName}" or its cluster has not ended`,
      detail: `Operation ${blocking.operationId} (${operationTitles[blocking.kind]}) is ${blocking.state}.`,
      hint: 'Wait until it has ended, or cancel it.',
    })
    this.blockingOperationId = blocking.operationId
  }
}

/** `noun.verb` of a kind in the audit log: `create-instance` → `instance.create`, `change-settings` → `setting.set`. */
export function auditAction(kind: OperationKind): string {
  if (kind === 'change-settings') return 'setting.set'
  if (kind === 'resolve-drift') return 'setting.resolve'
  if (kind === 'change-cluster-settings') return 'setting.set_on_cluster'
  const [verb, noun] = kind.split('-') as [string, string]
  return `${noun}.${verb}`
}

const intents: Partial<Record<OperationKind, InstanceIntent>> = {
  'start-instance': 'running',
  'restart-instance': 'running',
  'stop-instance': 'stopped',
  'delete-instance': 'deleted',
}

/**
 * Writes intent, operation and audit row in one transaction and answers at once; the controller does the rest. An
 * immediate stop (or restart) while a fast one is open hastens that one and answers it: who cannot wait for a shutdown
 * that hangs must not be told to wait for it. Throws
 * OperationConflict, `instance.not_found`, `instance.name_taken`, `instance.name_mismatch` (delete), `host.not_found`,
 * `host.revoked`, `host.ambiguous`, `operation.key_reused` or `operation.invalid_input`; nothing is written then.
 */
export async function submitOperation<K extends OperationKind>(
  db: Pick<Database, 'pool'>,
  submit: SubmitInput<K>,
): Promise<Submitted<K>> {
  const parsed = operationInputs[submit.kind].safeParse(submit.input)
  if (!parsed.success) {
    const issue = parsed.error.issues[0]
    throw fault('operation.invalid_input', `invalid input for operation "${submit.kind}"`, {
      detail: issue ? `${issue.path.join('.')}: ${issue.message}` : '',
    })
  }
  return write(db, submit, parsed.data as OperationInput<K>, null)
}

async function write<K extends OperationKind>(
  db: Pick<Database, 'pool'>,
  submit: Omit<SubmitInput<K>, 'input'>,
  input: OperationInput<K>,
  retryOf: string | null,
): Promise<Submitted<K>> {
  const earlier = await earlierSubmit(db, submit)
  if (earlier) return earlier
  const operationId = randomUUID()
  let hastened: string | null = null
  try {
    await inTransaction(db.pool, async (tx) => {
      const name = await writeIntent(tx, submit, input, retryOf)
      const blocking = await findOpenOperation(tx, input.instanceId)
      if (blocking && (await hastens(tx, submit, input, blocking))) {
        hastened = blocking.operationId
        return
      }
      if (blocking) throw new OperationConflict(blocking, name)
      await insertOperation(tx, {
        operationId,
        kind: submit.kind,
        input,
        instanceId: input.instanceId,
        actor: submit.actor,
        idempotencyKey: submit.idempotencyKey ?? null,
        retryOf,
      })
      await insertAuditEvent(tx, {
        actor: submit.actor,
        action: submit.audit?.action ?? auditAction(submit.kind),
        outcome: 'allowed',
        objectKind: 'instance',
        objectId: input.instanceId,
        detail: { operationId, name, ...auditDetail(submit.kind, input), ...(retryOf ? { retryOf } : {}) },
        ipAddress: submit.audit?.ipAddress,
      })
    })
  } catch (error) {
    // the same key may have got through a moment before, and be the very thing this one ran into
    const first = await earlierSubmit(db, submit)
    if (first) return first
    // two callers at once: the unique indexes let one through
    const constraint = sqlError(error)?.code === '23505' ? sqlError(error)?.constraint : undefined
    if (constraint === 'operation_one_open_per_instance' || constraint === 'operation_one_open_per_cluster') {
      const blocking = await findOpenOperation(db.pool, input.instanceId)
      // it may have ended meanwhile, then this one's turn has come
      if (!blocking) return write(db, submit, input, retryOf)
      const instance = await showInstance(db.pool, input.instanceId)
      throw new OperationConflict(blocking, instance?.name ?? input.instanceId)
    }
    if (
      constraint === 'instance_one_per_name' ||
      constraint === 'instance_pkey' ||
      constraint === 'cluster_one_per_name'
    )
      throw nameTaken((input as OperationInput<'create-instance'>).name)
    throw error
  }
  if (hastened) return { operationId: hastened, instanceId: input.instanceId, input, created: false }
  return { operationId, instanceId: input.instanceId, input, created: true }
}

/** Makes the open operation immediate where this one asks for the same, at once. */
async function hastens<K extends OperationKind>(
  tx: Transaction,
  submit: Omit<SubmitInput<K>, 'input'>,
  input: OperationInput<K>,
  blocking: { operationId: string; kind: OperationKind; instanceId: string },
): Promise<boolean> {
  if (blocking.instanceId !== input.instanceId) return false
  if (submit.kind !== blocking.kind || (input as { mode?: unknown }).mode !== 'immediate') return false
  if (!(await hastenOperation(tx, blocking.operationId))) return false
  await insertAuditEvent(tx, {
    actor: submit.actor,
    action: submit.audit?.action ?? auditAction(submit.kind),
    outcome: 'allowed',
    objectKind: 'instance',
    objectId: input.instanceId,
    detail: { operationId: blocking.operationId, hastened: true },
    ipAddress: submit.audit?.ipAddress,
  })
  return true
}

const nameTaken = (name: string) =>
  fault('instance.name_taken', `instance "${name}" already exists`, { hint: 'Choose another name.' })

async function earlierSubmit<K extends OperationKind>(
  db: Pick<Database, 'pool'>,
  submit: Omit<SubmitInput<K>, 'input'>,
): Promise<Submitted<K> | undefined> {
  if (!submit.idempotencyKey) return undefined
  const found = await findOperationByKey(db.pool, submit.idempotencyKey)
  if (!found) return undefined
  if (found.kind !== submit.kind || found.actor !== submit.actor.id)
    throw fault('operation.key_reused', 'idempotency key was used for another operation', {
      hint: 'Use a new key for every operation.',
    })
  const input = found.input as OperationInput<K>
  return { operationId: found.operationId, instanceId: input.instanceId, input, created: false }
}

/** Checks what only the database knows, writes what is wanted, and answers the instance's name. */
async function writeIntent<K extends OperationKind>(
  tx: Transaction,
  submit: Omit<SubmitInput<K>, 'input'>,
  input: OperationInput<K>,
  retryOf: string | null,
): Promise<string> {
  if (submit.kind === 'create-instance' && retryOf === null) {
    const create = input as OperationInput<'create-instance'>
    const hostId = await chooseHost(tx, submit.hostId)
    await insertInstance(tx, { instanceId: create.instanceId, name: create.name, hostId, intent: 'running' })
    return create.name
  }
  if (submit.kind === 'create-standby' && retryOf === null) {
    const create = input as OperationInput<'create-standby'>
    if (!(await readCluster(tx, create.clusterId)))
      throw fault('cluster.not_found', `cluster "${create.clusterId}" does not exist`)
    await insertStandby(tx, { ...create, hostId: await chooseHost(tx, submit.hostId) })
    return create.name
  }
  const instance = await showInstance(tx, input.instanceId)
  if (submit.kind === 'create-standby' && instance?.deletedAt) {
    const { clusterId } = input as OperationInput<'create-standby'>
    if (!(await readCluster(tx, clusterId)))
      throw fault('cluster.not_found', `cluster "${clusterId}" does not exist`)
    await chooseHost(tx, instance.host.hostId)
    await reviveStandby(tx, instance.instanceId)
    return instance.name
  }
  // what was removed without its host is fenced when it shows up
  if (instance && submit.kind === 'fence-instance') return instance.name
  if (!instance || instance.deletedAt)
    throw fault('instance.not_found', `instance "${input.instanceId}" does not exist`)
  await guardMember(tx, submit.kind, input, instance)
  if (
    submit.kind === 'delete-instance' ||
    submit.kind === 'remove-standby' ||
    submit.kind === 'promote-standby'
  ) {
    const { confirmName } = input as { confirmName: string }
    if (confirmName !== instance.name)
      throw fault('instance.name_mismatch', `"${confirmName}" is not the name of this instance`, {
        hint: `Type "${instance.name}" to confirm.`,
      })
  }
  const { unreachableHost = null } = input as { unreachableHost?: string | null }
  if (submit.kind === 'remove-standby' && unreachableHost !== null && unreachableHost !== instance.host.name)
    throw fault('host.name_mismatch', `"${unreachableHost}" is not the name of the standby’s host`, {
      hint: `Type "${instance.host.name}" to remove the standby without its host.`,
    })
  const intent = intents[submit.kind]
  if (intent) await setInstanceIntent(tx, input.instanceId, intent)
  return instance.name
}

/** Refuses what would leave a cluster without its primary, or a primary with what belonged to a standby. */
async function guardMember(
  tx: Transaction,
  kind: OperationKind,
  input: object,
  instance: InstanceView,
): Promise<void> {
  const { memberRole, members, name: clusterName } = instance.cluster
  const refuse = (code: string, message: string, hint: string) => {
    throw fault(code, message, { hint })
  }
  if ('clusterId' in input && input.clusterId !== instance.cluster.clusterId)
    refuse(
      'cluster.no_member',
      `instance "${instance.name}" is not a member of this cluster`,
      `It belongs to cluster "${clusterName}".`,
    )
  switch (kind) {
    case 'delete-instance':
      if (memberRole !== 'primary')
        refuse(
          'instance.is_standby',
          `instance "${instance.name}" is a standby`,
          'Remove the standby instead.',
        )
      if (members > 1)
        refuse(
          'instance.has_standbys',
          `instance "${instance.name}" is the primary of ${members - 1} other members`,
          'Remove its standbys first, or switch over.',
        )
      return
    case 'remove-standby':
    case 'promote-standby':
    case 'rejoin-standby':
    case 'switchover-cluster':
    case 'failover-cluster':
      if (memberRole === 'primary')
        refuse('instance.is_primary', `instance "${instance.name}" is the primary`, 'Name a standby.')
      return
    case 'change-commit-mode':
      if (memberRole !== 'primary')
        refuse('instance.is_standby', `instance "${instance.name}" is a standby`, 'Name the primary.')
      return
    case 'change-settings': {
      const { changes } = input as OperationInput<'change-settings'>
      return refuseOfCluster(
        changes.map((c) => c.name),
        instance,
      )
    }
    case 'resolve-drift':
      if ((input as OperationInput<'resolve-drift'>).how === 'adopt')
        refuseOfCluster(
          instance.settingDrift.map((d) => d.name),
          instance,
        )
      return
    case 'change-cluster-settings': {
      const cluster = await readClusterOf(tx, instance.instanceId)
      const { members } = input as OperationInput<'change-cluster-settings'>
      const blockers = cluster ? clusterSettingBlockers(cluster, members) : []
      // one that is on its way to its primary, or was not heard of for seconds, is waited for by the operation
      const blocker = blockers.find((b) => !passingBlockers.includes(b.code))
      if (blocker) throw new FaultError(blocker)
      return
    }
    case 'change-page-repair': {
      const cluster = await readClusterOf(tx, instance.instanceId)
      if (memberRole !== 'primary')
        refuse('instance.is_standby', `instance "${instance.name}" is a standby`, 'Name the primary.')
      const { pageRepair } = input as OperationInput<'change-page-repair'>
      const known = new Set<string>(cluster?.members.map((m) => m.instanceId))
      for (const id of pageRepair.excluded)
        if (!known.has(id))
          refuse('cluster.no_member', `instance ${id} is not a member of this cluster`, 'Name its members.')
      if (cluster) refuseLastSource(cluster, pageRepair)
      return
    }
    case 'change-synchronous': {
      const cluster = await readClusterOf(tx, instance.instanceId)
      const { synchronous } = input as OperationInput<'change-synchronous'>
      const known = new Set<string>(cluster?.members.map((m) => m.instanceId))
      for (const id of synchronous?.instanceIds ?? [])
        if (!known.has(id) || id === cluster?.primaryInstanceId)
          refuse(
            'cluster.no_standby',
            `instance ${id} is not a standby of this cluster`,
            'Name its standbys.',
          )
      if (synchronous && synchronous.count > synchronous.instanceIds.length)
        refuse(
          'cluster.too_few_standbys',
          `commits would wait for ${synchronous.count} of ${synchronous.instanceIds.length} standbys`,
          'Ask for no more than there are.',
        )
    }
  }
}

/** A setting that one member alone must not have otherwise than the rest is changed across the cluster only. */
function refuseOfCluster(names: readonly string[], instance: InstanceView): void {
  const refusal = ofWholeCluster(names, instance.cluster)
  if (refusal) throw new FaultError(refusal)
}

/** Without page images a primary needs a source; taking the last one away would only have them written again. */
function refuseLastSource(cluster: ClusterObserved, pageRepair: PageRepair): void {
  const { protection } = primaryOf(cluster) ?? {}
  const { primaryInstanceId } = cluster
  if (!protection || protection.fullPageWrites || !protection.guard) return
  if (repairSourcesOf(cluster, primaryInstanceId).length === 0) return
  if (repairSourcesOf({ ...cluster, pageRepair }, primaryInstanceId).length > 0) return
  throw fault('page_repair.last_source', 'the primary runs with full_page_writes off and needs a source', {
    detail: 'Without one the guard would have full-page images written again.',
    hint: 'Turn full_page_writes on first, or leave one standby as a source.',
  })
}

async function chooseHost(tx: Transaction, wanted: string | undefined): Promise<string> {
  const all = await listHosts(tx)
  if (wanted !== undefined) {
    const host = all.find(({ hostId }) => hostId === wanted)
    if (!host) throw hostNotFound(wanted)
    if (host.revokedAt) throw hostRevoked(host.name)
    return wanted
  }
  const hosts = all.filter((host) => host.revokedAt === null)
  const [only, ...others] = hosts
  if (!only)
    throw fault('host.not_found', 'no host is registered', {
      hint: 'The controller registers its own host when it starts: check "./floe status".',
    })
  if (others.length === 0) return only.hostId
  const freePorts = ({ facts }: (typeof hosts)[number]) =>
    facts ? facts.instancePorts.to - facts.instancePorts.from + 1 - facts.instancePorts.used : 0
  const [best] = hosts
    .filter((host) => host.state === 'online' && freePorts(host) > 0)
    .sort((a, b) => freePorts(b) - freePorts(a) || (a.name < b.name ? -1 : 1))
  if (!best)
    throw fault('host.ambiguous', 'no host that answers has a free port', {
      hint: 'Name the host of the new instance, or look at the hosts.',
    })
  return best.hostId
}

/** What the audit log keeps of an input: everything but verifiers of passwords and what the row says already. */
function auditDetail(kind: OperationKind, input: object): Record<string, unknown> {
  const { instanceId: _id, ownerPasswordVerifier: _verifier, ...rest } = input as Record<string, unknown>
  return kind === 'create-instance' || Object.keys(rest).length > 0 ? { input: rest } : {}
}

/**
 * Asks an operation to give up: a queued one is cancelled at once, a running one is `cancelling` until its step gave up
 * or was done. Answers the state afterwards. Throws `operation.not_found` or `operation.ended`.
 */
export async function cancelOperation(
  db: Pick<Database, 'pool'>,
  cancel: {
    operationId: string
    actor: Actor
    audit?: { ipAddress?: string | null | undefined } | undefined
  },
): Promise<{ state: OperationState }> {
  return inTransaction(db.pool, async (tx) => {
    const before = await readOperationForRetry(tx, cancel.operationId)
    if (!before) throw fault('operation.not_found', `operation "${cancel.operationId}" does not exist`)
    if (endedOperationStates.includes(before.state))
      throw fault('operation.ended', 'operation has already ended', { detail: `It is ${before.state}.` })
    await refusePastNoReturn(tx, cancel.operationId, before.kind)
    const state = await askToCancel(tx, cancel.operationId)
    if (state === 'cancelled') await markNeverMade(tx, cancel.operationId)
    await insertAuditEvent(tx, {
      actor: cancel.actor,
      action: 'operation.cancel',
      outcome: 'allowed',
      objectKind: 'operation',
      objectId: cancel.operationId,
      ipAddress: cancel.audit?.ipAddress,
    })
    return { state: state ?? before.state }
  })
}

/** A promotion that began goes through; giving it up would leave two members that could be the primary. */
async function refusePastNoReturn(tx: Transaction, operationId: string, kind: OperationKind): Promise<void> {
  const name = pointsOfNoReturn[kind]
  const step = name ? await readStepForCancel(tx, operationId, name) : undefined
  if (step && step.state !== 'pending' && !step.overdue)
    throw fault('operation.past_no_return', 'the operation is past the point of no return', {
      detail: `Step "${step.title}" has begun.`,
      hint: 'Wait until it has ended. It can be given up once a step is overdue.',
    })
}

/**
 * Takes a failed or cancelled operation up again, as a new operation with the same input: steps that succeeded are not
 * run again, the one that did not runs with its attempt + 1. (An ended operation stays as it ended.) Throws
 * `operation.not_found`, `operation.not_retryable`, or what submitting it would throw.
 */
export async function retryOperation(
  db: Pick<Database, 'pool'>,
  retry: {
    operationId: string
    actor: Actor
    idempotencyKey?: string | null | undefined
    audit?: { ipAddress?: string | null | undefined } | undefined
  },
): Promise<Submitted<OperationKind>> {
  const ended = await readOperationForRetry(db.pool, retry.operationId)
  if (!ended) throw fault('operation.not_found', `operation "${retry.operationId}" does not exist`)
  if (ended.state !== 'failed' && ended.state !== 'cancelled')
    throw fault('operation.not_retryable', 'only a failed or cancelled operation can be retried', {
      detail: `It is ${ended.state}.`,
    })
  const parsed = operationInputs[ended.kind].parse(ended.input)
  return write(
    db,
    {
      kind: ended.kind,
      actor: retry.actor,
      idempotencyKey: retry.idempotencyKey,
      audit: { action: 'operation.retry', ...retry.audit },
    },
    parsed as OperationInput<OperationKind>,
    retry.operationId,
  )
}
