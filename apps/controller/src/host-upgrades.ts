import {
  type Actor,
  dropUnusedPackages,
  findOperationByKey,
  type HostUpgradeChange,
  hostRevoked,
  listClustersOfHost,
  moveHostUpgrade,
  showHost,
  showOperation,
  takeHostUpgrades,
} from '@floe/db'
import {
  type Fault,
  FaultError,
  fault,
  type HostUpgrade,
  InstanceId,
  leftUnharmed,
  OperationId,
  planHostUpgrade,
  READ_ONLY,
  type UpgradeOrdered,
} from '@floe/domain'
import { OperationConflict, submitOperation } from '@floe/operations/submit'
import { bringPackages } from './bring-packages'
import { runLoop } from './loop'
import type { ControllerParts } from './parts'

/** An upgrade that waits, or whose operation works, is looked at this often. */
const EVERY_MS = 500
/** A controller that was killed is followed by another after this. */
const LEASE_MS = 10_000

/** A host whose new packages are installed reports their engine by then. */
const REPORTED_MS = 60_000
/** What no upgrade needs any more is looked for this often. */
const DROP_EVERY_MS = 60_000

type Parts = Pick<ControllerParts, 'db' | 'log' | 'database' | 'agents'>
type Taken = HostUpgrade & { actor: Actor }

/**
 * Carries out upgrades of hosts: orders the operation of one cluster after another, as planHostUpgrade() has them, each with the
 * rights of who asked. A cluster that failed before an instance of it was stopped is left, so that nobody holds up the others by
 * settings of their own; at one that did not start on the new engine it ends. Between two operations nothing is held, so that a
 * cluster whose turn has not come can fail over. Which one comes next follows from the row and from what is reported: a controller that takes over
 * goes on, and by its key no operation is ordered twice.
 */
export function carryOutHostUpgrades(parts: Parts, signal: AbortSignal): Promise<void> {
  const { db, log, database } = parts
  let droppedAt = Number.NEGATIVE_INFINITY
  return runLoop({ name: 'upgrade hosts', everyMs: EVERY_MS, signal, log, database }, async () => {
    if (performance.now() - droppedAt > DROP_EVERY_MS) {
      const dropped = await dropUnusedPackages(db.pool)
      if (dropped > 0) log.info('packages.dropped', { pieces: dropped })
      droppedAt = performance.now()
    }
    for (const upgrade of await takeHostUpgrades(db.pool, LEASE_MS)) {
      const change = await advance(upgrade, parts)
      await moveHostUpgrade(db.pool, upgrade.upgradeId, change)
      const { upgradeId, hostId } = upgrade
      if (change.installed) log.info('host.packages_installed', { upgradeId, hostId })
      // they are not kept for longer than somebody needs them
      if (change.installed || (change.end && upgrade.packages)) droppedAt = Number.NEGATIVE_INFINITY
      if (change.end)
        log.info('host.upgraded', {
          ...{ upgradeId, hostId },
          fault: 'fault' in change.end ? change.end.fault.code : null,
        })
    }
  })
}

const ended = (upgradeFault: Fault, ordered: readonly UpgradeOrdered[]): HostUpgradeChange => ({
  ordered,
  end: { fault: upgradeFault },
})

/** The packages of an upgrade come before any of its operations. */
async function bring(
  upgrade: Taken & { packages: NonNullable<HostUpgrade['packages']> },
  parts: Parts,
): Promise<HostUpgradeChange> {
  const host = await showHost(parts.db.pool, upgrade.hostId)
  if (!host || host.revokedAt !== null)
    return { end: { fault: hostRevoked(host?.name ?? upgrade.hostId).fault } }
  const brought = await bringPackages(upgrade, parts)
  if (brought.kind === 'wait') return { message: brought.message }
  if (brought.kind === 'failed') return { end: { fault: brought.fault } }
  return { installed: brought.installed, message: 'the packages are installed' }
}

async function advance(upgrade: Taken, parts: Parts): Promise<HostUpgradeChange> {
  const { db } = parts
  if (upgrade.packages && !upgrade.installed) return bring({ ...upgrade, packages: upgrade.packages }, parts)
  const ordered = [...upgrade.ordered]
  const last = ordered.at(-1)
  const operation = last ? await showOperation(db.pool, last.operationId) : undefined
  if (last && operation) {
    if (!operation.endedAt) return {}
    const why = operation.state === 'failed' && !last.back && operation.fault
    const unharmed = why && leftUnharmed(why) ? wordsOf(why) : null
    ordered[ordered.length - 1] = { ...last, state: operation.state, why: unharmed }
    if (operation.state !== 'succeeded' && unharmed === null)
      return ended(stoppedBy(last, operation.fault), ordered)
  }
  if (upgrade.cancelAskedAt !== null) return ended(cancelled, ordered)
  const moved = operation?.state === 'succeeded' && operation.input.switchover === true
  const former = moved ? String(operation.input.primary) : null
  if (last && !last.back && former !== null && upgrade.switchBack)
    return order(ordered, await wayBack(last, former, upgrade, ordered, db), db)
  return order(ordered, await nextOf(upgrade, ordered, db), db)
}

type Next =
  | {
      kind: 'order'
      submit: Parameters<typeof submitOperation>[1]
      as: Omit<UpgradeOrdered, 'operationId' | 'state'>
    }
  | { kind: 'ordered'; operation: UpgradeOrdered }
  | { kind: 'wait'; message: string }
  | { kind: 'end'; end: NonNullable<HostUpgradeChange['end']> }

const keyOf = ({ upgradeId }: Taken, clusterId: string) => `host-upgrade:${upgradeId}:${clusterId}`

/** The next cluster of the plan as things are now; what has been moved is no part of it any more. */
async function nextOf(upgrade: Taken, ordered: readonly UpgradeOrdered[], db: Parts['db']): Promise<Next> {
  const host = await showHost(db.pool, upgrade.hostId)
  if (!host || host.revokedAt !== null)
    return { kind: 'end', end: { fault: hostRevoked(host?.name ?? upgrade.hostId).fault } }
  const clusters = await listClustersOfHost(db.pool, host.hostId)
  const done = new Set<string>(ordered.filter(({ back }) => !back).map(({ clusterId }) => clusterId))
  // a controller that was killed may have ordered one without a word of it here
  for (const { clusterId, name } of clusters) {
    const found = done.has(clusterId)
      ? undefined
      : await findOperationByKey(db.pool, keyOf(upgrade, clusterId))
    if (found)
      return {
        kind: 'ordered',
        operation: {
          ...{ cluster: name, clusterId, back: false, state: null },
          operationId: OperationId.parse(found.operationId),
        },
      }
  }
  const build = host.facts?.engineBuild ?? null
  const { plan, upgrades } = planHostUpgrade({ ...host, build }, clusters, upgrade.except)
  // what is known of the host may be of the moment before its packages were installed
  if (plan.build !== upgrade.build && upgrade.installed && Date.now() - upgrade.installed.at < REPORTED_MS)
    return { kind: 'wait', message: `waiting until host "${host.name}" reports build ${upgrade.build}` }
  if (plan.blocker?.code === 'host.silent') return { kind: 'wait', message: plan.blocker.message }
  if (plan.blocker) return { kind: 'end', end: { fault: plan.blocker } }
  if (plan.build !== upgrade.build)
    return { kind: 'end', end: { fault: otherBuild(host.name, upgrade.build, String(plan.build)) } }
  const next = upgrades.find(({ input }) => input !== null && !done.has(input.clusterId))
  if (!next?.input) {
    const unharmed = ordered.flatMap(({ cluster, why }) => (why ? [{ member: cluster, why }] : []))
    // of a cluster that was tried the reason counts
    const others = plan.clusters.filter(({ cluster }) => !unharmed.some((u) => u.member === cluster))
    return { kind: 'end', end: { left: [...unharmed, ...others.flatMap(({ left }) => left)] } }
  }
  const { clusterId } = next.input
  return {
    kind: 'order',
    as: { cluster: next.plan.cluster, clusterId, back: false },
    submit: {
      kind: 'upgrade-members',
      input: next.input,
      actor: upgrade.actor,
      idempotencyKey: keyOf(upgrade, clusterId),
      asked: { clusterId },
    },
  }
}

/** The switchover that makes the former primary the primary again. */
async function wayBack(
  last: UpgradeOrdered,
  former: string,
  upgrade: Taken,
  ordered: readonly UpgradeOrdered[],
  db: Parts['db'],
): Promise<Next> {
  const clusters = await listClustersOfHost(db.pool, upgrade.hostId)
  const member = clusters
    .find(({ clusterId }) => clusterId === last.clusterId)
    ?.members.find(({ name }) => name === former)
  if (!member) return nextOf(upgrade, ordered, db)
  const { clusterId } = last
  return {
    kind: 'order',
    as: { cluster: last.cluster, clusterId, back: true },
    submit: {
      kind: 'switchover-cluster',
      input: { clusterId, instanceId: InstanceId.parse(member.instanceId) },
      actor: upgrade.actor,
      idempotencyKey: `${keyOf(upgrade, clusterId)}:back`,
      asked: { clusterId },
    },
  }
}

async function order(
  ordered: readonly UpgradeOrdered[],
  next: Next,
  db: Parts['db'],
): Promise<HostUpgradeChange> {
  if (next.kind === 'ordered') return { ordered: [...ordered, next.operation] }
  if (next.kind === 'wait') return { ordered, message: next.message }
  if (next.kind === 'end') return { ordered, end: next.end }
  try {
    const { operationId } = await submitOperation(db, next.submit)
    return {
      ordered: [...ordered, { ...next.as, operationId: OperationId.parse(operationId), state: null }],
    }
  } catch (error) {
    if (error instanceof OperationConflict || (error instanceof FaultError && error.fault.code === READ_ONLY))
      return { ordered, message: `cluster "${next.as.cluster}": ${error.message}` }
    if (error instanceof FaultError) return ended(stoppedBy(next.as, error.fault), ordered)
    throw error
  }
}

const wordsOf = (why: Fault) => [why.message, why.detail?.replace(/[.]$/, '')].filter(Boolean).join(': ')

const stoppedBy = (
  { cluster, back }: Pick<UpgradeOrdered, 'cluster' | 'back'>,
  why: Fault | null,
): Fault => ({
  code: why?.code === 'task.cancelled' || why === null ? 'host.upgrade_cancelled' : 'host.upgrade_stopped',
  message: back
    ? `could not switch cluster "${cluster}" back`
    : `the upgrade of the host ended at cluster "${cluster}"`,
  detail: [why?.message, why?.detail].filter(Boolean).join(': ') || 'Its operation was cancelled.',
  hint: why?.hint ?? 'Instances whose turn had not come run on as before. Check the plan again.',
})

const cancelled: Fault = {
  code: 'host.upgrade_cancelled',
  message: 'the upgrade of the host was cancelled',
  detail: 'Instances whose turn had not come run on as before.',
}

const otherBuild = (name: string, asked: string, installed: string): Fault =>
  fault('engine.not_installed', `another engine was installed on host "${name}" meanwhile`, {
    detail: `Asked for was "${asked}", installed is "${installed}".`,
    hint: 'Check the plan again.',
  }).fault
