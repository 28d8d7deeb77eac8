import { setTimeout as delay } from 'node:timers/promises'
import { type TaskInput, type TaskResult, type TaskStatus, tasks } from '@floe/agent-contract'
import { agentFault } from '@floe/agent-contract/client'
import {
  type BlockAddress,
  type ClusterMember,
  type Fault,
  formatBytes,
  type OperationKind,
} from '@floe/domain'
import { waitedMs } from './look-again'
import { fail, next, type StepBody, type StepContext, type StepOutcome, wait } from './step'
import { cancelledFault, startOnce } from './task-step'

/** One pass carries pieces for so long, then it says how far it is; who takes over goes on from there. */
const PASS_MS = 1_000
/** A piece is a moment's work; who has not done it by then is looked at again in the next pass. */
const PIECE_MS = 10_000

type Read = Extract<TaskInput, { kind: 'read-copies' }>
type Write = Extract<TaskInput, { kind: 'write-copies' }>
type Sent = TaskResult<'read-copies'>

/** What is carried from one member's host to another's, piece by piece. Each can be written again: it has its place. */
export type Carried = {
  to: ClusterMember
  /** Of each piece in order, as it counts for progress. */
  pieceBytes: readonly number[]
  /** Whose host reads a piece. */
  from(number: number): ClusterMember
  read(number: number): Read
  write(number: number, sent: Sent): Write
  /** Written before the first piece. */
  first?: Write
  /** Of blocks that are not whole where they were read either. */
  damaged(blocks: BlockAddress[]): Fault
}

class Interrupted extends Error {
  readonly outcome: StepOutcome
  constructor(outcome: StepOutcome) {
    super('the pass ends here')
    this.outcome = outcome
  }
}

/** Which piece is the next one after so many bytes: one that was begun and not ended is carried again. */
function pieceAfter(pieceBytes: readonly number[], done: number): number {
  let end = 0
  const number = pieceBytes.findIndex((bytes) => {
    end += bytes
    return end > done
  })
  return number < 0 ? pieceBytes.length : number
}

/**
 * A step that has one agent read, and another one write, through the controller: the one way on which contents of engines' files
 * pass from host to host (ARCHITECTURE.md). The agent that writes a piece checks it, and the engine checks it again.
 */
export function copyStep<K extends OperationKind>(
  what: (context: StepContext<K>) => Promise<Carried>,
): StepBody<K> {
  return {
    deadlineMs: 24 * 3_600_000,
    async run(context) {
      const carried = await what(context)
      const { pieceBytes, to } = carried
      const totalBytes = pieceBytes.reduce((sum, bytes) => sum + bytes, 0)
      let done = context.step.doneBytes ?? 0
      const work = () => ({ doneBytes: done, totalBytes, remainingMs: null })
      const progress = () => (totalBytes === 0 ? 1 : done / totalBytes)
      const begun = performance.now()
      // until the first one is written nothing is said of how far it is, so that who takes over begins with it
      let ready = context.step.doneBytes != null
      try {
        if (!ready && carried.first) await runPiece(context, to, 'first', carried.first)
        ready = true
        for (let number = pieceAfter(pieceBytes, done); number < pieceBytes.length; number++) {
          if (context.cancelAskedAt) return fail(cancelledFault('It was given up between two pieces.'))
          if (performance.now() - begun > PASS_MS)
            return wait(1, `${formatBytes(done)} of ${formatBytes(totalBytes)} brought to "${to.name}"`, {
              progress: progress(),
              work: work(),
            })
          const sent = tasks['read-copies'].result.safeParse(
            await runPiece(context, carried.from(number), `read.${number}`, carried.read(number)),
          )
          if (!sent.success)
            return fail({
              code: 'agent.bad_result',
              message: 'task "read-copies" answered an unexpected result',
            })
          if (sent.data.damaged.length > 0) return fail(carried.damaged(sent.data.damaged))
          await runPiece(context, to, `write.${number}`, carried.write(number, sent.data))
          done += pieceBytes[number] ?? 0
        }
      } catch (error) {
        if (!(error instanceof Interrupted)) throw error
        const { outcome } = error
        return outcome.word === 'wait' && ready ? { ...outcome, progress: progress(), work: work() } : outcome
      }
      return next({ carriedBytes: done }, { log: [{ text: `${formatBytes(done)} brought to "${to.name}"` }] })
    },
  }
}

/** Has a piece read or written, and sees its end. Ends the pass where that is not now, and the step where it never will. */
async function runPiece<K extends OperationKind>(
  context: StepContext<K>,
  member: ClusterMember,
  id: string,
  task: Read | Write,
): Promise<Record<string, unknown>> {
  const { operationId, step } = context
  const key = { operationId, step: `${step.name}.${id}`.slice(0, 63), attempt: step.attempt }
  const until = performance.now() + PIECE_MS
  try {
    const agent = context.agentOf(member.hostId)
    let status: TaskStatus = await startOnce(agent, { key, task })
    for (let pauseMs = 1; status.state === 'running'; pauseMs = Math.min(2 * pauseMs, 50)) {
      if (performance.now() > until) throw new Interrupted(wait(500, `waiting for host "${member.hostName}"`))
      await delay(pauseMs)
      status = await agent.checkTask({ key, afterLogSeq: 0 })
    }
    if (status.state === 'succeeded') return status.result ?? {}
    // an agent that was started again has forgotten it
    if (status.state === 'not-started') throw new Interrupted(wait(50, `again on host "${member.hostName}"`))
    if (status.state === 'cancelled') throw new Interrupted(fail(cancelledFault('Its task was cancelled.')))
    throw new Interrupted(
      fail(
        status.fault ?? { code: 'agent.no_reason', message: `task "${task.kind}" failed without a reason` },
      ),
    )
  } catch (error) {
    if (error instanceof Interrupted) throw error
    const fault = agentFault(error)
    if (fault.code === 'task.instance_busy') throw new Interrupted(wait(500, fault.detail ?? fault.message))
    if (fault.code === 'agent.bad_request')
      throw new Interrupted(fail(olderAgent(member.hostName, task.kind, fault)))
    if (fault.code !== 'agent.unreachable') throw new Interrupted(fail(fault))
    if (context.cancelAskedAt && waitedMs(context, context.cancelAskedAt) > context.patience.cancelGiveUpMs)
      throw new Interrupted(fail(cancelledFault(`Host "${member.hostName}" does not answer.`)))
    throw new Interrupted(wait(1_000, `host "${member.hostName}" does not answer`))
  }
}

const olderAgent = (hostName: string, kind: string, { message }: Fault): Fault => ({
  code: 'agent.older',
  message: `the agent of host "${hostName}" does not take task "${kind}"`,
  detail: `It says: ${message}.`,
  hint: 'Run "git pull" and "./floe up" on that host, on an enrolled one "./floe agent start", then try again.',
})
