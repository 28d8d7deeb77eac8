import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import {
  type Actor,
  askToCancel,
  countOpenReaders,
  type Database,
  escalateOperation,
  findOpenOperation,
  findOperationByKey,
  type InstanceView,
  insertAuditEvent,
  insertOperation,
  inTransaction,
  lockOperation,
  markNeverMade,
  type OperationOfKey,
  readClusterOf,
  readInDoubt,
  readOperationForRetry,
  readStepForCancel,
  setInstanceIntent,
  showInstance,
  sqlError,
  type Transaction,
} from '@floe/db'
import {
  type ClusterObserved,
  endedOperationStates,
  FaultError,
  FLASHBACK_READERS_MAX,
  fault,
  InstanceId,
  isHiddenSetting,
  type OperationInput,
  type OperationKind,
  type OperationState,
  operationRecord,
  programSettingsOf,
  RUNS_PROGRAMS,
  readOnlyFault,
  verifierParts,
} from '@floe/domain'
import { operationDefinition } from './definitions'

export { chooseHost } from './choose-host'
export { adoptedBefore } from './kinds/adopt-instance'

type Asked<K extends OperationKind> = Partial<OperationInput<K>> & { clusterId?: string }

export type SubmitInput<K extends OperationKind> = {
  kind: K
  /** What is to be done; a function where that is worked out from what is, and only when the key is new. */
  input: OperationInput<K> | (() => Promise<OperationInput<K>>)
  actor: Actor
  /** The same key answers the same operation, however often it is sent; for anything else it is refused. */
  idempotencyKey?: string | null | undefined
  /**
   * What was asked for, as far as the caller says it himself: a key that is sent again must ask for the same. Left out,
   * it is the whole input but what is generated for each request.
   */
  asked?: Asked<K> | undefined
  /** The audit row written with it; `action` defaults to `noun.verb` of the kind, e.g. `instance.create`. */
  audit?:
    | {
        action?: string | undefined
        ipAddress?: string | null | undefined
        /** Names of the settings it touches, where the input does not say them. */
        settings?: readonly string[] | undefined
      }
    | undefined
  /** The host a new instance is made on; left out, the one that answers and has the most free ports. */
  hostId?: string | undefined
}

export type Submitted<K extends OperationKind> = {
  operationId: string
  instanceId: string
  /** What was stored: of the first call where the idempotency key was seen before. */
  input: OperationInput<K>
  /** False when the idempotency key answered an earlier operation, or one that is open was escalated instead. */
  created: boolean
}

/** Operations on an instance that only read and have not ended: some work, the others wait for their turn. */
const OPEN_READERS_MAX = 2 * FLASHBACK_READERS_MAX

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
      detail: `Operation ${blocking.operationId} (${operationRecord(blocking.kind).title}) is ${blocking.state}.`,
      hint: 'Wait until it has ended, or cancel it.',
    })
    this.blockingOperationId = blocking.operationId
  }
}

/**
 * Writes intent, operation and audit row in one transaction and answers at once; the controller does the rest. An
 * immediate stop (or restart) while a fast one is open escalates that one and answers it: who cannot wait for a shutdown
 * that hangs must not be ordered to wait for it. Throws
 * OperationConflict, `instance.not_found`, `instance.name_taken`, `instance.name_mismatch` (delete), `host.not_found`,
 * `host.revoked`, `host.ambiguous`, `operation.too_many`, `operation.key_reused`, `control_database.read_only` or `operation.invalid_input`; nothing
 * is written then.
 */
export async function submitOperation<K extends OperationKind>(
  db: Pick<Database, 'pool'>,
  submit: SubmitInput<K>,
): Promise<Submitted<K>> {
  const { kind, input } = submit
  if (typeof input !== 'function') return submitInput(db, submit, parseInput(kind, input), null)
  const earlier = await earlierSubmit(db, submit, submit.asked ?? {}, null)
  return earlier ?? submitInput(db, submit, parseInput(kind, await input()), null)
}

function parseInput<K extends OperationKind>(kind: K, input: unknown): OperationInput<K> {
  const parsed = operationRecord(kind).input.safeParse(input)
  if (parsed.success) return parsed.data as OperationInput<K>
  const issue = parsed.error.issues[0]
  throw fault('operation.invalid_input', `invalid input for operation "${kind}"`, {
    detail: issue ? `${issue.path.join('.')}: ${issue.message}` : '',
  })
}

/** A submit whose input is known. */
type Submit<K extends OperationKind> = Omit<SubmitInput<K>, 'input'>

async function submitInput<K extends OperationKind>(
  db: Pick<Database, 'pool'>,
  submit: Submit<K>,
  input: OperationInput<K>,
  retryOf: string | null,
): Promise<Submitted<K>> {
  return (
    (await earlierSubmit(db, submit, submit.asked ?? input, retryOf)) ?? write(db, submit, input, retryOf)
  )
}

async function write<K extends OperationKind>(
  db: Pick<Database, 'pool'>,
  submit: Submit<K>,
  input: OperationInput<K>,
  retryOf: string | null,
): Promise<Submitted<K>> {
  const operationId = randomUUID()
  let escalated: string | null = null
  try {
    await inTransaction(db.pool, async (tx) => {
      const { instanceId, clusterId } = input as { instanceId: string; clusterId?: string }
      const inDoubt = await readInDoubt(tx, { instanceId, clusterId: submit.asked?.clusterId ?? clusterId })
      if (inDoubt) throw readOnlyFault(inDoubt)
      const name = await writeIntent(tx, submit, input, retryOf)
      const reads = operationRecord(submit.kind).readsOnly === true
      if (reads && (await countOpenReaders(tx, input.instanceId)) >= OPEN_READERS_MAX)
        throw fault('operation.too_many', `too many operations read on instance "${name}" at once`, {
          detail: `${OPEN_READERS_MAX} have not ended.`,
          hint: 'Wait until one of them has ended, or cancel it.',
        })
      const blocking = reads ? undefined : await findOpenOperation(tx, input.instanceId)
      if (blocking && (await escalates(tx, submit, input, blocking))) {
        escalated = blocking.operationId
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
        action: submit.audit?.action ?? operationRecord(submit.kind).action,
        outcome: 'allowed',
        objectKind: 'instance',
        objectId: input.instanceId,
        detail: {
          operationId,
          name,
          ...auditDetail(submit.kind, input),
          ...auditClass([...settingsNamedIn(submit.kind, input), ...(submit.audit?.settings ?? [])]),
          ...(retryOf ? { retryOf } : {}),
        },
        ipAddress: submit.audit?.ipAddress,
      })
    })
  } catch (error) {
    // the same key may have got through a moment before, and be the very thing this one ran into
    const first = await earlierSubmit(db, submit, submit.asked ?? input, retryOf)
    if (first) return first
    // two callers at once: the unique indexes let one through
    const constraint = sqlError(error)?.code === '23505' ? sqlError(error)?.constraint : undefined
    if (constraint === 'operation_one_open_per_instance' || constraint === 'operation_one_open_per_cluster') {
      const blocking = await findOpenOperation(db.pool, input.instanceId)
      // it may have ended meanwhile, then this one's turn has come
      if (!blocking) return submitInput(db, submit, input, retryOf)
      const instance = await showInstance(db.pool, input.instanceId)
      throw new OperationConflict(blocking, instance?.name ?? input.instanceId)
    }
    if (
      constraint === 'instance_one_per_name' ||
      constraint === 'instance_pkey' ||
      constraint === 'cluster_one_per_name'
    )
      throw nameTaken(nameIn(input))
    throw error
  }
  if (escalated) return { operationId: escalated, instanceId: input.instanceId, input, created: false }
  return { operationId, instanceId: input.instanceId, input, created: true }
}

/** Makes the open operation immediate where this one asks for the same, at once. */
async function escalates<K extends OperationKind>(
  tx: Transaction,
  submit: Submit<K>,
  input: OperationInput<K>,
  blocking: { operationId: string; kind: OperationKind; instanceId: string },
): Promise<boolean> {
  if (blocking.instanceId !== input.instanceId) return false
  if (submit.kind !== blocking.kind || (input as { mode?: unknown }).mode !== 'immediate') return false
  if (!(await escalateOperation(tx, blocking.operationId))) return false
  await insertAuditEvent(tx, {
    actor: submit.actor,
    action: submit.audit?.action ?? operationRecord(submit.kind).action,
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

/** The name that an operation gives an instance. */
const nameIn = (input: object): string => {
  const { name, reported } = input as { name?: string; reported?: { name: string } }
  return name ?? reported?.name ?? ''
}

/** The operation that the same request began; throws `operation.key_reused` where its key began another one. */
async function earlierSubmit<K extends OperationKind>(
  db: Pick<Database, 'pool'>,
  submit: Submit<K>,
  asked: object,
  retryOf: string | null,
): Promise<Submitted<K> | undefined> {
  if (!submit.idempotencyKey) return undefined
  const found = await findOperationByKey(db.pool, submit.idempotencyKey)
  if (!found) return undefined
  const same =
    found.kind === submit.kind &&
    found.actor === submit.actor.id &&
    found.retryOf === retryOf &&
    (submit.hostId === undefined || submit.hostId === found.hostId) &&
    asksTheSame(found, asked)
  if (!same)
    throw fault('operation.key_reused', 'idempotency key was used for another operation', {
      detail: `It started operation ${found.operationId} (${operationRecord(found.kind).title}).`,
      hint: 'Use a new key for every operation.',
    })
  const input = found.input as OperationInput<K>
  return { operationId: found.operationId, instanceId: input.instanceId, input, created: false }
}

/** Whether an operation is what is asked for: each field that is named has the value it was ordered with. */
function asksTheSame(found: OperationOfKey, asked: object): boolean {
  // as it would be stored today: with defaults that came later
  const stored: Record<string, unknown> =
    operationRecord(found.kind).input.safeParse(found.input).data ?? found.input
  const except = [
    ...(operationRecord(found.kind).madeAnew ?? []),
    // somebody was in a hurry after it was ordered
    ...(found.input.hastened === true ? ['mode'] : []),
  ]
  const storedAs = (name: string) =>
    name === 'clusterId' ? (stored.clusterId ?? found.clusterId) : stored[name]
  return Object.entries(asked)
    .filter(([name]) => !except.includes(name))
    .every(([name, value]) => isDeepStrictEqual(comparable(value), comparable(storedAs(name))))
}

/** A value as JSON has it; members of a cluster in one order, as a takeover changes theirs. */
function comparable(value: unknown): unknown {
  if (value === undefined) return null
  const plain = JSON.parse(JSON.stringify(value))
  const idOf = (item: unknown) => String((item as { instanceId?: unknown } | null)?.instanceId ?? '')
  return Array.isArray(plain) && plain.every(idOf)
    ? plain.sort((a, b) => (idOf(a) < idOf(b) ? -1 : 1))
    : plain
}

/** Checks what only the database knows, writes what is wanted, and answers the instance's name. */
async function writeIntent<K extends OperationKind>(
  tx: Transaction,
  submit: Submit<K>,
  input: OperationInput<K>,
  retryOf: string | null,
): Promise<string> {
  const definition = operationDefinition(submit.kind)
  const instance = await showInstance(tx, input.instanceId)
  const { hostId } = submit
  if (await definition.claim?.({ tx, input, retryOf, hostId, instance }))
    return instance?.name ?? nameIn(input)
  if (!instance || (instance.deletedAt && !definition.alsoDeleted))
    throw fault('instance.not_found', `instance "${input.instanceId}" does not exist`)
  refuseOtherCluster(input, instance)
  let cluster: Promise<ClusterObserved | undefined> | undefined
  const readCluster = () => {
    cluster ??= readClusterOf(tx, instance.instanceId)
    return cluster
  }
  await definition.guard?.({ tx, input, instance, readCluster })
  const { confirmName } = input as { confirmName?: string }
  if (confirmName !== undefined && confirmName !== instance.name)
    throw fault('instance.name_mismatch', `"${confirmName}" is not the name of this instance`, {
      hint: `Type "${instance.name}" to confirm.`,
    })
  const { intent } = operationRecord(submit.kind)
  // what the controller orders automatically never changes what a person wants; it may not, either
  if (intent && instance.intent !== intent) await setInstanceIntent(tx, input.instanceId, intent)
  return instance.name
}

/** An operation on a cluster names one of its members. */
function refuseOtherCluster(input: object, { name, cluster }: InstanceView): void {
  if ('clusterId' in input && input.clusterId !== cluster.clusterId)
    throw fault('cluster.no_member', `instance "${name}" is not a member of this cluster`, {
      hint: `It belongs to cluster "${cluster.name}".`,
    })
}

/** Stands in an audit row for the value of a setting that viewers are not shown. */
export const VALUE_NOT_KEPT = 'not stored here: see the history of settings'

/**
 * What the audit log keeps of an input: everything but verifiers of passwords, what the row says already, and values of
 * settings that viewers are not shown. Those may be passwords, and nothing can be taken out of a chain of hashes later.
 */
function auditDetail(kind: OperationKind, input: object): Record<string, unknown> {
  const except: readonly string[] = ['instanceId', ...verifierParts]
  const rest = Object.fromEntries(
    Object.entries(withoutHiddenValuesOf(input) as object).filter(([part]) => !except.includes(part)),
  )
  return kind === 'create-instance' || Object.keys(rest).length > 0 ? { input: rest } : {}
}

/** Changes are `{ name, value }`, and the settings of a new instance a record by name. */
function withoutHiddenValuesOf(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(withoutHiddenValuesOf)
  if (typeof part !== 'object' || part === null) return part
  const { name } = part as { name?: unknown }
  const ofHidden = typeof name === 'string' && isHiddenSetting(name)
  return Object.fromEntries(
    Object.entries(part).map(([key, value]) =>
      typeof value === 'string' && ((ofHidden && key === 'value') || isHiddenSetting(key))
        ? [key, VALUE_NOT_KEPT]
        : [key, withoutHiddenValuesOf(value)],
    ),
  )
}

/** What an audit row says of settings that run programs or load libraries; nothing where there are none among them. */
export function auditClass(names: readonly string[]): { class?: string; programSettings?: string[] } {
  const programs = programSettingsOf(names)
  return programs.length === 0 ? {} : { class: RUNS_PROGRAMS, programSettings: programs }
}

/** The names of the settings that an operation's input changes. */
export const settingsNamedIn = (kind: OperationKind, input: unknown): string[] =>
  operationRecord(kind).settings?.(input) ?? []

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
    // a step of no return that begins after it was looked for would be cancelled in words only
    await lockOperation(tx, cancel.operationId)
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
  const name = operationRecord(kind).pointOfNoReturn
  const step = name ? await readStepForCancel(tx, operationId, name) : undefined
  if (step && step.state !== 'pending' && !step.overdue)
    throw fault('operation.past_no_return', 'the operation is past the point of no return', {
      detail: `Step "${step.title}" has begun.`,
      hint: 'Wait until it has ended. It can be cancelled once a step is overdue.',
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
  if (ended.fault?.code === 'operation.not_continued')
    throw fault('operation.not_retryable', 'an operation from before a restore cannot be retried', {
      detail: 'What its steps had done when the backup was made may no longer be true.',
      hint: 'Submit a new operation.',
    })
  const parsed = operationRecord(ended.kind).input.parse(ended.input) as OperationInput<OperationKind>
  // an undone creation has deleted its row: it is inserted again, on the same host
  const former = ended.kind === 'create-instance' ? await showInstance(db.pool, parsed.instanceId) : undefined
  const takenBack = former !== undefined && former.deletedAt !== null
  return submitInput(
    db,
    {
      kind: ended.kind,
      ...(takenBack ? { hostId: former.host.hostId } : {}),
      actor: retry.actor,
      idempotencyKey: retry.idempotencyKey,
      audit: { action: 'operation.retry', ...retry.audit },
    },
    (takenBack
      ? { ...parsed, instanceId: InstanceId.parse(randomUUID()) }
      : parsed) as OperationInput<OperationKind>,
    retry.operationId,
  )
}
