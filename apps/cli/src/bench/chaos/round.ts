import { fault, incidentKindOf, Verdict } from '@floe/domain'
import { type Configuration, formatConfiguration } from './configurations'
import type { ChaosFault, Stage } from './faults'
import type { Answer, InstallationOnHosts } from './installation-on-hosts'
import {
  judgeLoss,
  longestGap,
  type Overlap,
  overlaps,
  overlapWasSaid,
  primaryAt,
  type Row,
  type Span,
  type Statement,
  unsaidSpans,
  withoutPrimary,
} from './judge'
import { LEDGER, Ledger, pause } from './ledger'
import { act, mend } from './person'
import type { Story } from './story'
import { Witness } from './witness'

const CLIENTS = 4
const STATEMENT_MS = 8_000
/** Writes before the fault, for a history to lose. */
const BEFORE_MS = 3_000
/** The operation is under way, and how far is left to chance. */
const DURING_MS = 1_500
/** After a person has done what there was to do. */
const LEAST_MS = 3_000
const MEND_MS = 180_000
const WRITE_MS = 60_000
/**
 * How long a cluster may be without a primary before its incident has to be open: what it waits, and what it takes to see.
 * After a sudden silence a standby that says it streams may only have an idle primary, for up to 32 s.
 */
export const NO_PRIMARY_MS = 50_000
/** A share of people takes a loss where the product asks for it. */
const ACCEPTS = 0.6
/** A share of people comes late: nobody acts for longer than a cluster may be without a primary unsaid. */
const COMES_LATE = 0.25
const LATE_MS = NO_PRIMARY_MS + 10_000

export type RoundResult = {
  round: number
  fault: string
  configuration: Configuration
  acknowledged: number
  lost: number
  unsaid: number
  /** Rows of earlier rounds that were there at the end of theirs and are not any more. */
  lostOfBefore: number
  twoPrimaries: Overlap[]
  twoPrimariesSaid: Overlap[]
  noPrimaryUnsaid: Span[]
  /** Failovers of this round that nobody ordered. */
  automaticFailovers: number
  gapMs: number
  bounded: boolean
  /** What was missing at the end though everything was tried that the console said; null when the cluster was whole. */
  missing: string | null
  failures: string[]
}

/** What each earlier round left in the ledger. */
export type Kept = Map<number, number>

/** Who the primary is now, and who else there is. */
async function stageOf(on: InstallationOnHosts, story: Story, chance: number): Promise<Stage> {
  const { cluster } = await on.show()
  const primary = cluster.members.find((m) => m.instanceId === cluster.primaryInstanceId)
  if (!primary) throw fault('bench.no_primary', 'the cluster has no primary')
  const standbys = on.members.filter((m) => m !== primary.name)
  const at = Math.floor(chance * standbys.length)
  const who = (name: string) => ({ name, host: on.hostOf(name) })
  return {
    on,
    primary: who(primary.name),
    candidate: who(standbys[at] as string),
    other: who(standbys[(at + 1) % standbys.length] as string),
    tell: (line) => story.tell(line),
  }
}

const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`
const stepTimes = (steps: { name: string; startedAt: number | null; endedAt: number | null }[]) =>
  steps
    .filter((s) => s.startedAt !== null && s.endedAt !== null)
    .map((s) => `, ${s.name} ${seconds(Number(s.endedAt) - Number(s.startedAt))}`)
    .join('')

/** What the failovers of this round said of a loss, and how many of them no person ordered. */
async function failoversSince(
  on: InstallationOnHosts,
  since: number,
  primaryBefore: (at: number) => string,
  story: Story,
): Promise<{ statements: Statement[]; automatic: number }> {
  const { ok, value } = await on.verb('operation', 'list', '--limit', '100')
  if (!ok) return { statements: [], automatic: 0 }
  const began = performance.timeOrigin + since
  const listed = value as { operationId: string; kind: string; createdAt: number; actor: string }[]
  // whoever sets what commits wait for is the person of this benchmark
  const person = listed.find((o) => o.kind === 'change-synchronous')?.actor
  const statements: Statement[] = []
  const failovers = listed.filter((o) => o.kind === 'failover-cluster' && o.createdAt >= began)
  for (const { operationId } of failovers) {
    const shown = (await on.verb('operation', 'show', operationId)).value as {
      createdAt: number
      result: Record<string, unknown> | null
      steps: { name: string; startedAt: number | null; endedAt: number | null }[]
    } | null
    if (shown) story.tell(`failover: ordered at ${seconds(shown.createdAt - began)}${stepTimes(shown.steps)}`)
    const verdict = Verdict.safeParse(shown?.result?.verdict)
    if (!shown || !verdict.success) continue
    statements.push({
      at: shown.createdAt - performance.timeOrigin,
      kind: verdict.data.kind,
      covers: verdict.data.kind === 'proven' ? verdict.data.proof.covers : null,
      lossBytes: verdict.data.kind === 'bounded' ? verdict.data.lossBytes : null,
      notFenced:
        shown.result?.fenced === false ? [primaryBefore(shown.createdAt - performance.timeOrigin)] : [],
    })
  }
  return { statements, automatic: failovers.filter((o) => o.actor !== person).length }
}

/** When the incident `no-primary` was open, as ms of our own clock. */
async function saidWithoutPrimary(on: InstallationOnHosts, since: number, story: Story): Promise<Span[]> {
  const { ok, value } = await on.verb('incident', 'list', '--state', 'all', '--limit', '200')
  if (!ok) return []
  const all = value as {
    title: string
    key: string
    openedAt: number
    closedAt: number | null
  }[]
  const ours = (at: number) => at - performance.timeOrigin
  const round = all.filter((i) => i.closedAt === null || ours(i.closedAt) >= since)
  for (const i of round)
    story.tell(
      `incident: ${i.title} (${((ours(i.openedAt) - since) / 1000).toFixed(0)} s … ${i.closedAt === null ? 'still open' : `${((ours(i.closedAt) - since) / 1000).toFixed(0)} s`})`,
    )
  return round
    .filter((i) => incidentKindOf(i.key)?.kind === 'no-primary')
    .map((i) => ({
      from: ours(i.openedAt),
      to: i.closedAt === null ? Number.POSITIVE_INFINITY : ours(i.closedAt),
    }))
}

/** What the primary holds of this round, and how many of each earlier one. */
async function readLedger(on: InstallationOnHosts, round: number) {
  const primary = (await on.show()).cluster
  const name = primary.members.find((m) => m.instanceId === primary.primaryInstanceId)?.name ?? ''
  const session = on.connectAsWitness(name)
  try {
    const rows = await session.run(`select client || '-' || n from ${LEDGER} where round = ${round}`)
    const counts = await session.run(`select round || ' ' || count(*) from ${LEDGER} group by round`)
    return {
      present: new Set(rows.split('\n')),
      counts: new Map(
        counts
          .split('\n')
          .filter(Boolean)
          .map((line) => line.split(' ').map(Number) as [number, number]),
      ),
    }
  } finally {
    session.end()
  }
}

/** One fault in one configuration, from a cluster that is whole to one that is whole again, and what became of the rows. */
export async function playRound(
  on: InstallationOnHosts,
  story: Story,
  kept: Kept,
  {
    round,
    fault: chosen,
    configuration,
    chance,
    configure = (to, wanted, primary) => to.configure(wanted, primary),
    statementMs = STATEMENT_MS,
  }: {
    round: number
    fault: ChaosFault
    configuration: Configuration
    chance: number
    /** What a person orders before the round, where it is more than what commits wait for. */
    configure?: (on: InstallationOnHosts, configuration: Configuration, primary: string) => Promise<Answer>
    /** How long clients wait for the answer to a statement. */
    statementMs?: number
  },
): Promise<RoundResult> {
  story.begin(`round ${round}: ${chosen.id}: ${chosen.words}; ${formatConfiguration(configuration)}`)
  const stage = await stageOf(on, story, (chance * 7) % 1)
  const configured = await configure(on, configuration, stage.primary.name)
  if (!configured.ok)
    throw fault('bench.not_configured', 'the round’s configuration was refused', { detail: configured.words })
  story.tell(`primary ${stage.primary.name}, candidate ${stage.candidate.name}`)
  const ledger = new Ledger(round, CLIENTS, on.connectAsClient, statementMs)
  const witness = new Witness(on.members, on.connectAsWitness)
  // a primary that clients do not reach is none to them
  const look = new Witness(on.members, on.connectFromClients, { commits: false })
  const since = performance.now()
  let healed = false
  const heal = async () => {
    if (healed) return
    healed = true
    await chosen.heal(stage)
    story.tell('the fault is healed')
  }
  try {
    if (!(await ledger.allWrite(WRITE_MS)))
      throw fault('bench.no_write', 'clients cannot write before the fault')
    await pause(BEFORE_MS)
    const accepts = (chance * 13) % 1 < ACCEPTS
    const lateMs = chosen.person === 'fails over' && (chance * 29) % 1 < COMES_LATE ? LATE_MS : 0
    const during = chosen.begins === 'during the operation'
    const acting = during ? act(stage, chosen, accepts) : null
    // what it throws is told by the await below
    acting?.catch(() => {})
    if (during) await pause(chance * DURING_MS)
    const injected = performance.now()
    story.tell(`fault: ${chosen.words}`)
    await chosen.inject(stage)
    if (lateMs > 0) story.tell(`person: does not look for ${lateMs / 1000} s`)
    const person = acting ?? pause(lateMs).then(() => act(stage, chosen, accepts))
    const over = person.then(
      () => true,
      () => true,
    )
    if (chosen.healsWhen === 'clients write') {
      // rows that were under way when it began are not meant
      await pause(2_000)
      if (!(await ledger.allWrite(chosen.lastsMs)))
        story.tell('clients could not write for as long as it lasted')
    } else if (chosen.person === 'waits') await pause(chosen.lastsMs)
    // healed when a person has done what there was to do, or when it is over by itself
    else
      await Promise.race([
        over.then(() => pause(Math.min(LEAST_MS, chosen.lastsMs))),
        pause(lateMs + chosen.lastsMs),
      ])
    await pause(Math.max(0, injected + (chosen.leastMs ?? 0) - performance.now()))
    if (chosen.person === 'fails over') await Promise.race([over, pause(20_000)])
    await heal()
    await person
    let missing = await mend(stage, MEND_MS)
    if (!(await ledger.allWrite(missing === null ? WRITE_MS : 5_000)) && missing === null)
      missing = 'clients cannot write though the console shows nothing'
    const end = performance.now()
    await ledger.stop()
    await Promise.all([witness.stop(), look.stop()])
    return await judged({
      on,
      story,
      kept,
      round,
      chosen,
      configuration,
      ledger,
      witness,
      look,
      since,
      injected,
      end,
      missing,
      primary: stage.primary.name,
    })
  } finally {
    await heal().catch((error: unknown) => story.tell(`not healed: ${String(error)}`))
    await Promise.all([ledger.stop(), witness.stop(), look.stop()])
  }
}

async function judged(of: {
  on: InstallationOnHosts
  story: Story
  kept: Kept
  round: number
  chosen: ChaosFault
  configuration: Configuration
  ledger: Ledger
  witness: Witness
  look: Witness
  since: number
  injected: number
  end: number
  missing: string | null
  /** At the beginning. */
  primary: string
}): Promise<RoundResult> {
  const {
    on,
    story,
    kept,
    round,
    chosen,
    configuration,
    ledger,
    witness,
    look,
    since,
    injected,
    end,
    missing,
    primary,
  } = of
  const { present, counts } = await readLedger(on, round)
  const { statements, automatic } = await failoversSince(
    on,
    since,
    (at) => primaryAt(witness.accepted, at) ?? primary,
    story,
  )
  const said = await saidWithoutPrimary(on, since, story)
  const lostRows: Row[] = ledger.rows.filter((r) => !present.has(`${r.client}-${r.n}`))
  const primaries = new Map<string, number>()
  for (const a of witness.accepted) primaries.set(`${a.member} ${a.timeline}`, a.acknowledgedAt)
  const loss = judgeLoss(lostRows, statements, configuration.commitMode, [injected, ...primaries.values()])
  let lostOfBefore = 0
  for (const [earlier, count] of kept) lostOfBefore += Math.max(0, count - (counts.get(earlier) ?? 0))
  kept.clear()
  for (const [n, count] of counts) kept.set(n, count)
  const all = overlaps(witness.accepted)
  const twoPrimaries = all.filter((o) => !overlapWasSaid(o, statements))
  const withoutOne = withoutPrimary(look.primarySeen, { from: injected, to: end }, NO_PRIMARY_MS)
  const noPrimaryUnsaid = chosen.consoleCannotKnow ? [] : unsaidSpans(withoutOne, said, NO_PRIMARY_MS)
  const gapMs = longestGap(ledger.rows, ledger.clients, { from: injected, to: end })
  const at = (ms: number) => seconds(ms - since)
  const failures = [
    ...(loss.unsaid.length > 0 ? [`${loss.unsaid.length} acknowledged rows lost, and ${loss.why}`] : []),
    ...(lostOfBefore > 0 && statements.every((s) => s.kind === 'proven')
      ? [`${lostOfBefore} rows of earlier rounds are gone`]
      : []),
    ...twoPrimaries.map(
      (o) => `"${o.one}" and "${o.other}" both accepted commits from ${at(o.from)} to ${at(o.to)}`,
    ),
    ...noPrimaryUnsaid.map((s) => `no primary from ${at(s.from)} to ${at(s.to)}, and no incident said so`),
    ...(missing === null ? [] : [`not whole after everything that the console says was done: ${missing}`]),
  ]
  story.tell(
    `${ledger.rows.length} of ${ledger.sent} rows acknowledged, ${lostRows.length} lost (${loss.why}); longest gap ${Math.round(gapMs)} ms; ${all.length - twoPrimaries.length} overlaps of primaries that were said`,
  )
  for (const s of statements) story.tell(`verdict: ${JSON.stringify(s)}`)
  for (const f of failures) story.tell(`FAILED: ${f}`)
  return {
    round,
    fault: chosen.id,
    configuration,
    acknowledged: ledger.rows.length,
    lost: lostRows.length,
    unsaid: loss.unsaid.length,
    lostOfBefore,
    twoPrimaries,
    twoPrimariesSaid: all.filter((o) => !twoPrimaries.includes(o)),
    noPrimaryUnsaid,
    automaticFailovers: automatic,
    gapMs,
    bounded: chosen.bounded,
    missing,
    failures,
  }
}
