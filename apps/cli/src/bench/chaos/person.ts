import { incidentKindOf, isConnected, lossDoubts, standbySeenOf } from '@floe/domain'
import type { ClusterDetail } from '../../command/find-cluster'
import type { ChaosFault, Stage } from './faults'
import { type Answer, CLUSTER } from './installation-on-hosts'
import { pause } from './ledger'

const LOOK_MS = 1_000
/** A person tries the same thing again after so long, and so often. */
const AGAIN_MS = 20_000
const TRIES = 4
/** A crashed instance is started by itself until then, as its incident says. */
const STAYS_DOWN_MS = 90_000

/** Verbs of a hint that a person carries out; all others only look, or take something away. */
const MENDING =
  /^(cluster failover|cluster switchover|cluster synchronous|cluster renew-roles|cluster page-repair|standby rejoin|standby reclone|instance start|console accept-restored|agent start) ?/

/** The first command of a hint that mends something, as words. */
export function commandOf(hint: string | null): string[] | null {
  for (const [, line] of (hint ?? '').matchAll(/"\.\/floe ([^"]+)"/g))
    if (line && MENDING.test(line) && !/[A-Z]{3,}/.test(line)) return line.split(/\s+/)
  return null
}

/** Whether the cluster is as it should be; else what is missing, in words. */
export function whatIsMissing({ cluster, openOperation }: ClusterDetail): string | null {
  const primary = cluster.members.find((m) => m.instanceId === cluster.primaryInstanceId)
  if (primary?.hostState !== 'online') return 'the primary’s host does not answer'
  if (primary.state !== 'running' || primary.role !== 'primary')
    return `"${primary.name}" is to be the primary and is ${primary.fenced ? 'fenced' : `${primary.state} (${primary.role})`}`
  if (openOperation) return `operation ${openOperation.kind} has not ended`
  for (const m of cluster.members) {
    if (m === primary) continue
    if (m.hostState !== 'online') return `host "${m.hostName}" does not answer`
    if (m.memberRole !== 'standby') return `"${m.name}" is ${m.memberRole}`
    if (m.fenced || m.state !== 'running') return `"${m.name}" is ${m.fenced ? 'fenced' : m.state}`
    if (!isConnected(standbySeenOf(primary, m))) return `"${m.name}" does not stream`
  }
  return null
}

/** Waits until the console shows that something is wrong with the primary; false when it did not for so long. */
async function untilToldOf({ on, primary, tell }: Stage, boundMs: number): Promise<boolean> {
  const end = performance.now() + boundMs
  while (performance.now() < end) {
    try {
      const { cluster } = await on.show()
      const member = cluster.members.find((m) => m.name === primary.name)
      const incident = (await on.incidents()).find((i) => i.severity === 'critical')
      if (incident || member?.state !== 'running' || member.hostState !== 'online') {
        tell(
          `console: ${incident?.title ?? `"${primary.name}" is ${member?.state}, its host ${member?.hostState}`}`,
        )
        return true
      }
    } catch (error) {
      tell(`console: ${error instanceof Error ? error.message : String(error)}`)
    }
    await pause(LOOK_MS)
  }
  tell('console: nothing is said to be wrong')
  return false
}

/**
 * What a person does about it: fails over as the product lets them, first with nothing accepted, then with what a refusal asks
 * to be accepted. `accepts` is whether they take a loss; a host that answers them they never call unreachable.
 */
async function failOver({ on, primary, tell }: Stage, hostGone: boolean, accepts: boolean): Promise<Answer> {
  const more: string[] = []
  for (let tries = 0; ; tries++) {
    const answer = await on.verb('cluster', 'failover', CLUSTER, ...more)
    const code = answer.fault?.code ?? ''
    if (answer.ok || tries >= TRIES) return answer
    const asksForHost = code === 'failover.host_unreachable' || code === 'failover.not_fenced'
    const asksForLoss = lossDoubts.includes(code) || code === 'failover.loss_not_accepted'
    if (asksForHost && hostGone && !more.includes('--unreachable-host'))
      more.push('--unreachable-host', primary.host.name)
    else if (asksForLoss && accepts && !more.includes('--accept-loss'))
      more.push(
        '--accept-loss',
        /Accept a loss of (\d+) bytes/.exec(answer.fault?.hint ?? '')?.[1] ?? 'unknown',
      )
    else if (asksForLoss && accepts && !more.includes('unknown'))
      more.splice(more.indexOf('--accept-loss') + 1, 1, 'unknown')
    else {
      tell('person: leaves it at that')
      return answer
    }
  }
}

/** Carries out what the fault's person does. */
export async function act(stage: Stage, fault: ChaosFault, accepts: boolean): Promise<void> {
  if (fault.person === 'waits') return
  if (fault.person === 'switches over') {
    await stage.on.verb('cluster', 'switchover', CLUSTER, '--to', stage.candidate.name)
    return
  }
  if (await untilToldOf(stage, fault.lastsMs)) await failOver(stage, fault.hostGone ?? false, accepts)
}

/**
 * Does what the console says until the cluster is whole: verbs that hints of open incidents name, and the rejoin of what is
 * fenced. Answers what is still missing after so long, null when nothing is.
 */
export async function mend(stage: Stage, boundMs: number): Promise<string | null> {
  const { on, tell } = stage
  const begun = performance.now()
  const end = begun + boundMs
  const tried = new Map<string, { at: number; times: number }>()
  const once = async (words: string[]): Promise<boolean> => {
    const key = words.join(' ')
    const before = tried.get(key)
    if (before && (before.times >= TRIES || performance.now() - before.at < AGAIN_MS)) return false
    tell(`person: does what the console says: ./floe ${key}`)
    const isFailover = key.startsWith('cluster failover')
    if (isFailover) await failOver(stage, false, true)
    else await on.verb(...words)
    tried.set(key, { at: performance.now(), times: (before?.times ?? 0) + 1 })
    return true
  }
  let missing: string | null = 'the console does not answer'
  let told: string | null = null
  while (performance.now() < end) {
    try {
      const detail = await on.show()
      const incidents = await on.incidents()
      missing = whatIsMissing(detail)
      const critical = incidents.find((i) => i.severity === 'critical')
      if (missing === null && critical) missing = `incident: ${critical.title}`
      if (missing === null) return null
      if (missing !== told) tell(`console: ${missing}`)
      told = missing
      let did = detail.openOperation !== null
      for (const { hint, key } of did ? [] : incidents) {
        const comesBack =
          incidentKindOf(key)?.kind === 'instance-crashed' && performance.now() - begun < STAYS_DOWN_MS
        if (comesBack) continue
        const words = commandOf(hint)
        if (words && (await once(words))) {
          did = true
          break
        }
      }
      if (!did) {
        const primary = detail.cluster.members.find((m) => m.instanceId === detail.cluster.primaryInstanceId)
        const fenced = detail.cluster.members.find(
          (m) => m !== primary && m.fenced && m.hostState === 'online',
        )
        if (fenced && primary?.state === 'running') await once(['standby', 'rejoin', fenced.name])
      }
    } catch (error) {
      tell(`console: ${error instanceof Error ? error.message : String(error)}`)
    }
    await pause(LOOK_MS)
  }
  return missing
}
