import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { type TaskInput, type TaskStatus, tasks as taskRecords } from '@floe/agent-contract'
import { agentFault } from '@floe/agent-contract/client'
import { readPackagePiece } from '@floe/db'
import {
  type Fault,
  FaultError,
  fault,
  formatBytes,
  type HostPackage,
  type HostUpgrade,
  InstanceId,
  PACKAGE_PIECE_BYTES,
  type PackagesInstalled,
  toFault,
} from '@floe/domain'
import type { AgentTasks } from '@floe/operations'
import type { ControllerParts } from './parts'

/** One pass sends pieces for so long, then the row says how far it is; who takes over asks the agent, and goes on from there. */
const PASS_MS = 2_000
/** A piece is a moment's work. */
const PIECE_MS = 10_000
/** An upgrade that was asked for so long ago, and is cancelled, does not wait for a silent agent any more. */
const SILENT_MS = 900_000

export type Brought =
  | { kind: 'wait'; message: string }
  | { kind: 'installed'; installed: PackagesInstalled }
  | { kind: 'failed'; fault: Fault }

type Upgrade = Pick<HostUpgrade, 'upgradeId' | 'hostId' | 'downgrade' | 'cancelAskedAt' | 'createdAt'> & {
  packages: readonly HostPackage[]
}
type Parts = Pick<ControllerParts, 'db' | 'agents'>

/** The key under which an upgrade's packages are installed: once, whichever controller asks. */
const keyOf = ({ upgradeId }: Upgrade) => ({ operationId: upgradeId, step: 'install-packages', attempt: 1 })

/**
 * Brings the packages of an upgrade to its host and has them installed there, a pass at a time. How far it is is the agent's
 * word: which bytes it has, and what became of the task. So a controller that was killed leaves nothing to be found out, and an
 * agent that was stopped by its own packages is asked again once it answers.
 */
export async function bringPackages(upgrade: Upgrade, { db, agents }: Parts): Promise<Brought> {
  const key = keyOf(upgrade)
  try {
    const { tasks } = agents.of(upgrade.hostId)
    const status = await tasks.checkTask({ key, afterLogSeq: 0 })
    if (status.state === 'succeeded') return { kind: 'installed', installed: { at: Date.now() } }
    if (status.state === 'failed' || status.state === 'cancelled')
      return { kind: 'failed', fault: status.fault ?? withdrawn }
    if (status.state === 'running') {
      if (upgrade.cancelAskedAt !== null) await tasks.cancelTask(key)
      return { kind: 'wait', message: status.message ?? 'the packages are being installed' }
    }
    if (upgrade.cancelAskedAt !== null) {
      // a start that is still on its way is refused from now on
      const { state } = await tasks.cancelTask(key)
      return state === 'cancelled'
        ? { kind: 'failed', fault: withdrawn }
        : { kind: 'wait', message: 'the packages are being installed' }
    }
    const sent = await sendPieces(upgrade, db, tasks)
    if (sent !== null) return sent
    await tasks.startTask({
      key,
      task: {
        kind: 'install-packages',
        instanceId: InstanceId.parse(upgrade.upgradeId),
        packages: [...upgrade.packages],
        downgrade: upgrade.downgrade,
      },
    })
    return { kind: 'wait', message: 'the packages are being installed' }
  } catch (error) {
    return judge(error, upgrade)
  }
}

function judge(error: unknown, upgrade: Upgrade): Brought {
  const reason = error instanceof FaultError ? toFault(error) : agentFault(error)
  if (reason.code === 'task.instance_busy') return { kind: 'wait', message: reason.message }
  if (reason.code !== 'agent.unreachable') return { kind: 'failed', fault: reason }
  // an agent that never comes back must not keep the row open for good, once somebody has cancelled it
  if (Date.now() - upgrade.createdAt > SILENT_MS && upgrade.cancelAskedAt !== null)
    return { kind: 'failed', fault: withdrawnUnseen }
  return { kind: 'wait', message: 'waiting for the agent of the host to answer' }
}

/** Null once the host has all of them. */
async function sendPieces(upgrade: Upgrade, db: Parts['db'], agent: AgentTasks): Promise<Brought | null> {
  const until = performance.now() + PASS_MS
  const total = upgrade.packages.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  let before = 0
  for (const { name, digest, sizeBytes } of upgrade.packages) {
    const send = (offset: number, bytes: Buffer) =>
      sendPiece(agent, {
        kind: 'receive-package',
        instanceId: InstanceId.parse(upgrade.upgradeId),
        ...{ digest, sizeBytes, offset, data: bytes.toString('base64') },
      })
    let there = await send(0, Buffer.alloc(0))
    while (there < sizeBytes) {
      if (performance.now() > until)
        return {
          kind: 'wait',
          message: `${formatBytes(before + there)} of ${formatBytes(total)} of packages brought`,
        }
      const number = Math.floor(there / PACKAGE_PIECE_BYTES)
      const piece = await readPackagePiece(db.pool, digest, number)
      if (!piece) throw notStored(name)
      // a write that was cut off may have left a part of a piece
      const rest = piece.subarray(there - number * PACKAGE_PIECE_BYTES)
      const now = await send(there, rest)
      if (now <= there) throw noProgress(name)
      there = now
    }
    before += sizeBytes
  }
  return null
}

async function sendPiece(
  agent: AgentTasks,
  task: Extract<TaskInput, { kind: 'receive-package' }>,
): Promise<number> {
  // it is kept in memory only, and one that was sent before has another answer by now
  const key = { operationId: task.instanceId, step: `receive-package.${randomUUID()}`, attempt: 1 }
  const until = performance.now() + PIECE_MS
  let status: TaskStatus = await agent.startTask({ key, task })
  for (let pauseMs = 1; status.state === 'running' && performance.now() < until; pauseMs *= 2) {
    await delay(Math.min(pauseMs, 50))
    status = await agent.checkTask({ key, afterLogSeq: 0 })
  }
  if (status.state === 'succeeded') {
    const result = taskRecords['receive-package'].result.safeParse(status.result)
    if (result.success && result.data.receivedBytes <= task.sizeBytes) return result.data.receivedBytes
    throw fault('agent.bad_result', 'task "receive-package" answered an unexpected result')
  }
  if (status.fault) throw new FaultError(status.fault)
  throw fault('agent.unreachable', 'the agent has not taken a piece of a package')
}

const withdrawn: Fault = {
  code: 'host.upgrade_cancelled',
  message: 'the upgrade of the host was cancelled',
  detail: 'No package was installed, and no instance was moved.',
}

const withdrawnUnseen: Fault = {
  code: 'host.upgrade_cancelled',
  message: 'the upgrade of the host was cancelled while its agent did not answer',
  detail: 'Whether its packages were installed is not known. No instance was moved.',
  hint: 'Look on the host: systemctl status floe-agent.service, and dpkg --audit.',
}

const notStored = (name: string) =>
  fault('package.not_stored', `package "${name}" is no longer stored in the console`, {
    detail: 'Nothing was installed.',
    hint: 'Upgrade the host again with the packages.',
  })

const noProgress = (name: string) =>
  fault('package.not_taken', `the host does not take package "${name}"`, {
    detail: 'Its agent answers that it has no more than before. Nothing was installed.',
  })
