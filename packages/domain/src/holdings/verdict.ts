import { z } from 'zod'
import { Fault } from '../fault'
import { InstanceId } from '../ids'
import { compareLsn, Lsn } from '../lsn'
import { CommitMode, type CommitModeScope, exactBytes, lsnDistance } from '../replication'
import { along, beginningOf, holds, relate, type Timeline, WalPosition } from './wal-position'

/** Standbys that a commit may have waited for: any `count` of them. Null: it waited for none. */
export const SynchronousRule = z
  .object({ count: z.number().int().min(1), instanceIds: z.array(InstanceId).min(1) })
  .nullable()
export type SynchronousRule = z.infer<typeof SynchronousRule>

/** A timeline and where it began. */
export const TimelineBegun = z.object({ timeline: z.number().int(), begin: Lsn })
export type TimelineBegun = z.infer<typeof TimelineBegun>

/** A promotion that was begun, and of which it is not known whether it took place. */
export const UnsettledPromotion = z.object({
  instanceId: InstanceId,
  /** What the member held when it was begun; null where that is unknown. */
  from: WalPosition.nullable(),
})
export type UnsettledPromotion = z.infer<typeof UnsettledPromotion>

/** What is recorded of a cluster, as far as it bears on who may hold acknowledged commits. */
export type HoldingsRecord = {
  primaryInstanceId: string
  /** The timeline that its primary began, with those before; null while unknown. */
  timeline: Timeline | null
  /** Every timeline that a primary of this cluster has begun, and where. */
  begun: readonly TimelineBegun[]
  /** Members whose promotion was begun, and of which it is not known whether it took place. */
  unsettled: readonly UnsettledPromotion[]
  /** Every set that may have been in force since commits waited for all of them alike. */
  rules: readonly SynchronousRule[]
  commitMode: CommitMode
  /** Databases and roles that commit with less than the cluster; null where that was not reported. */
  weaker: readonly CommitModeScope[] | null
  /** No session could commit without waiting for standbys. */
  floor?: boolean
}

/** What a member answered once it was ordered to receive no more WAL, or to accept no write. */
export type Answer = {
  instanceId: string
  name: string
  hostName: string
  /**
   * `isolated`: a standby that receives nothing more. `fenced`: ended, and no primary any more. `primary`: it accepts
   * writes. `silent`: it did not answer, or is no standby.
   */
  state: 'isolated' | 'fenced' | 'primary' | 'silent'
  /** The end of the WAL on its disk; null where that is unknown. */
  end: WalPosition | null
  /** Of one whose promotion was begun: it is a standby, and that promotion cannot take place any more. */
  promotionOver?: boolean
}

/** A member as the verdict shows it: whether it answered, what it holds, and how that relates to the candidate's. */
export const AskedMember = z.object({
  name: z.string(),
  hostName: z.string(),
  state: z.enum(['isolated', 'fenced', 'primary', 'silent']),
  end: WalPosition.nullable(),
  /** Of the candidate's WAL: `all` is the candidate itself or the same WAL. */
  relation: z.enum(['same', 'ahead', 'behind', 'diverged', 'unknown']),
  /** WAL that it has and the candidate lacks; null where that is unknown. */
  beyondBytes: z.number().nullable(),
})
export type AskedMember = z.infer<typeof AskedMember>

/** Why no acknowledged commit can be anywhere but on the candidate. Only judgeHoldings() makes one. */
export const Proof = z
  .object({
    candidate: z.string(),
    /**
     * `disk`: every commit that waited for its primary's disk. `standbys`: every commit that waited for standbys; others
     * may be lost.
     */
    covers: z.enum(['disk', 'standbys']),
    /** Sentences, each a reason; together the proof. */
    because: z.array(z.string()).min(1),
    /** What commits with less than the proof covers, by name. */
    except: z.array(z.string()),
    /** What has to be true besides. */
    provided: z.array(z.string()),
    /** With `standbys`: every commit waited for them, since no session could have it otherwise. */
    floor: z.boolean().default(false),
    asked: z.array(AskedMember),
  })
  .brand<'Proof'>()
export type Proof = z.infer<typeof Proof>

/** What a failover to the candidate would lose. Nothing only with the proof of it. */
export const Verdict = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('proven'), proof: Proof }),
  /** At most so many bytes of WAL. */
  z.object({
    kind: z.literal('bounded'),
    lossBytes: z.number().int().min(0),
    doubts: z.array(Fault).min(1),
    asked: z.array(AskedMember),
  }),
  z.object({ kind: z.literal('unknown'), doubts: z.array(Fault).min(1), asked: z.array(AskedMember) }),
])
export type Verdict = z.infer<typeof Verdict>

/** Codes of doubts: what a person who accepts a loss takes on, and nothing else is passed by that. */
export const lossDoubts: readonly string[] = [
  'cluster.asynchronous',
  'candidate.behind',
  'candidate.diverged',
  'candidate.position_unknown',
  'candidate.quorum_unseen',
  'commits.levels_unknown',
  'commits.weaker',
  'history.ambiguous',
  'history.unknown',
  'promotion.unsettled',
]

/** What was found of one member that may have been a primary. */
type Account =
  | { covers: 'disk' | 'standbys'; because: string[]; provided?: string[] }
  | { covers: null; doubts: Fault[]; lossBytes: number | null }

type Case = {
  record: HoldingsRecord
  answers: readonly Answer[]
  candidate: Answer
}

/**
 * Whether the candidate holds every acknowledged commit, with the proof; else how much could be lost, and why that cannot
 * be excluded. Pure. The answers have to be final: of members that receive nothing more and accept no write.
 */
export function judgeHoldings(
  record: HoldingsRecord,
  answers: readonly Answer[],
  candidateId: string,
): Verdict {
  const candidate = answers.find((a) => a.instanceId === candidateId)
  if (!candidate) throw new Error(`no answer of candidate ${candidateId}`)
  const asked = answers.map((a) => askedMember(a, candidate))
  const blocked = blockedFor(record, candidate)
  if (blocked) return { kind: 'unknown', doubts: [blocked], asked }
  const of: Case = { record, answers, candidate }
  const accounts = possiblePrimaries(of).map((a) => account(of, a))
  const open = accounts.filter((a) => a.covers === null)
  if (open.length === 0) return { kind: 'proven', proof: prove(of, accounts, asked) }
  const doubts = open.flatMap((a) => a.doubts)
  const lossBytes = open.reduce<number | null>(
    (sum, a) => (sum === null || a.lossBytes === null ? null : sum + a.lossBytes),
    0,
  )
  return lossBytes === null
    ? { kind: 'unknown', doubts, asked }
    : { kind: 'bounded', lossBytes, doubts, asked }
}

/**
 * What makes every comparison worthless. All go along the timeline that the primary of the record began: any other has a
 * number that another member may have given, too.
 */
function blockedFor(record: HoldingsRecord, candidate: Answer): Fault | null {
  const { timeline, unsettled } = record
  if (candidate.state === 'silent' || candidate.end === null)
    return {
      code: 'candidate.position_unknown',
      message: `what instance "${candidate.name}" holds is unknown`,
      detail:
        candidate.state === 'silent'
          ? `It did not answer on host "${candidate.hostName}".`
          : 'Where its WAL ends could not be read.',
    }
  if (!timeline || !beginningOf(timeline))
    return {
      code: 'history.unknown',
      message: 'the timeline that the primary began is not known',
      detail: 'Positions can only be compared along it.',
      hint: 'It is recorded as soon as the agent of a running primary reports it.',
    }
  const own = along(candidate.end, timeline)
  if (own && !place(record, candidate))
    return {
      code: 'history.ambiguous',
      message: `which history instance "${candidate.name}" follows is not known`,
      detail:
        'Two members may have been promoted at the same position, and have begun timelines of one number.',
      hint: 'Choose another standby, or accept an unknown loss.',
    }
  if (!own)
    return {
      code: 'history.unknown',
      message: `the history of instance "${candidate.name}" is not known`,
      detail: `It has WAL up to ${candidate.end.lsn} on timeline ${candidate.end.timeline}; where that timeline began was not reported.`,
      hint: 'Update the agent of its host.',
    }
  if (own.left && !unsettled.some((u) => u.instanceId === candidate.instanceId))
    return {
      code: 'candidate.diverged',
      message: `instance "${candidate.name}" has diverged from its cluster`,
      detail: `It parted at ${own.reach.lsn}; the primary is on timeline ${timeline.timeline}.`,
      hint: 'Rejoin it, or choose another standby.',
    }
  return null
}

/**
 * How far a member's WAL goes along the timeline of the record; null where that is unknown, also because a timeline of the
 * same number and beginning could be another one: two primaries have begun such, or the member itself may have.
 */
function place(record: HoldingsRecord, { instanceId, end }: Answer): ReturnType<typeof along> {
  const timeline = record.timeline as Timeline
  const on = along(end, timeline)
  if (!on) return null
  const begin = beginningOf(timeline) as WalPosition
  const beyond = compareLsn(on.reach.lsn, begin.lsn) > 0
  const own = record.unsettled.filter((u) => u.instanceId === instanceId)
  const cameThere = ({ from }: UnsettledPromotion) =>
    relate(from, begin)?.kind === 'ahead' && along(from, timeline)?.left === false
  if (beyond && !own.every(cameThere)) return null
  const known = [...(timeline.ancestors ?? []), { timeline: timeline.timeline, end: null }]
  let from = '0/0'
  for (const { timeline: number, end: until } of known) {
    const alike =
      record.begun.filter((b) => b.timeline === number && compareLsn(b.begin, from) === 0).length > 1
    const within =
      compareLsn(on.reach.lsn, from) > 0 && (until === null || compareLsn(on.reach.lsn, until) <= 0)
    if (alike && within) return null
    if (until !== null) from = until
  }
  return on
}

/** Everybody besides the candidate who may have acknowledged commits as a primary. */
function possiblePrimaries({ record, answers, candidate }: Case): Answer[] {
  const ids = new Set<string>([record.primaryInstanceId, ...record.unsettled.map((u) => u.instanceId)])
  ids.delete(candidate.instanceId)
  return [...ids].map(
    (instanceId) =>
      answers.find((a) => a.instanceId === instanceId) ?? {
        instanceId,
        name: instanceId,
        hostName: '?',
        state: 'silent',
        end: null,
      },
  )
}

function account(of: Case, primary: Answer): Account {
  const { record, candidate } = of
  const recorded = primary.instanceId === record.primaryInstanceId
  const on = place(record, primary)
  // one that was promoted all the same, and made a standby later, has left for a timeline of its own
  if (!recorded && primary.promotionOver && on && !on.left)
    return {
      covers: 'disk',
      because: [`The promotion of "${primary.name}" was begun and did not take place.`],
    }
  const final = primary.state === 'fenced' && on && primary.end
  if (final && !on.left && holds(candidate.end, on.reach))
    return {
      covers: 'disk',
      because: [
        `"${primary.name}" is fenced; its WAL ends at ${final.lsn} on timeline ${final.timeline}, and "${candidate.name}" holds it up to there.`,
      ],
    }
  const lossBytes = final ? lsnDistance(relate(candidate.end, on.reach)?.until, final.lsn) : null
  if (!recorded) return { covers: null, doubts: [unsettled(primary, candidate, lossBytes)], lossBytes }
  const byStandbys = accountByStandbys(of, primary)
  if (byStandbys.covers === null) return { ...byStandbys, lossBytes: lossBytes ?? byStandbys.lossBytes }
  if (!lossBytes) return byStandbys
  const beyond = `${exactBytes(lossBytes)} of WAL exist on "${primary.name}" alone and are left behind; no commit in it was acknowledged by a standby.`
  return { ...byStandbys, because: [...byStandbys.because, beyond] }
}

const unsettled = (primary: Answer, candidate: Answer, lossBytes: number | null): Fault => ({
  code: 'promotion.unsettled',
  message: `instance "${primary.name}" may have been promoted`,
  detail:
    lossBytes === null
      ? `Its promotion was begun, and how it ended is unknown${primary.state === 'silent' ? `: host "${primary.hostName}" did not answer` : ''}. What it acknowledged since may be on no other member.`
      : `It holds ${exactBytes(lossBytes)} of WAL that "${candidate.name}" lacks.`,
  hint: `Fail over to "${primary.name}", or bring its host back first.`,
})

/** Whether standbys prove that the candidate has every commit that waited for them. */
function accountByStandbys(of: Case, primary: Answer): Account {
  const { record, candidate } = of
  const rules = record.rules.filter((rule) => rule !== null)
  if (record.rules.length === 0 || rules.length < record.rules.length || !waits(record.commitMode))
    return doubt({
      code: 'cluster.asynchronous',
      message: `the last commits of "${primary.name}" may be on no standby`,
      detail: 'Replication was asynchronous: commits that this standby had not received are lost.',
    })
  const timeline = record.timeline as Timeline
  const begin = beginningOf(timeline) as WalPosition
  if (!holds(candidate.end, begin))
    return doubt({
      code: 'candidate.behind',
      message: `instance "${candidate.name}" has not reached timeline ${timeline.timeline}`,
      detail: `Its WAL ends at ${candidate.end?.lsn}; the primary began that timeline at ${begin.lsn}.`,
      hint: 'Choose another standby.',
    })
  const levels = levelsInDoubt(record)
  const quorums = rules.map((rule) => quorum(of, rule, timeline))
  const unseen = quorums.flatMap((q) => q.unseen ?? [])
  const ahead = quorums.flatMap((q) => q.ahead).sort((a, b) => b.bytes - a.bytes)[0]
  const behind: Fault[] = ahead
    ? [
        {
          code: 'candidate.behind',
          message: `instance "${candidate.name}" is ${exactBytes(ahead.bytes)} behind "${ahead.name}"`,
          detail: `"${ahead.name}" may hold acknowledged commits that it lacks.`,
          hint: `Fail over to "${ahead.name}".`,
        },
      ]
    : []
  const doubts = [...unseen, ...behind, ...levels]
  if (doubts.length > 0) {
    const bounded = ahead && unseen.length === 0 && levels.length === 0
    return { covers: null, doubts, lossBytes: bounded ? ahead.bytes : null }
  }
  return {
    covers: 'standbys',
    because: quorums.flatMap((q) => q.because),
    provided:
      record.commitMode === 'remote_write'
        ? ['no machine of a synchronous standby failed: with remote_write a commit waits for its memory']
        : [],
  }
}

const doubt = (fault: Fault): Account => ({ covers: null, doubts: [fault], lossBytes: null })
const waits = (mode: string) => mode === 'remote_apply' || mode === 'on' || mode === 'remote_write'

type Quorum = { unseen: Fault[] | null; ahead: { name: string; bytes: number }[]; because: string[] }

/** What the standbys of one set say: are enough of them isolated, and does one have more than the candidate? */
function quorum(of: Case, rule: NonNullable<SynchronousRule>, timeline: Timeline): Quorum {
  const { record, answers, candidate } = of
  const listed = [...new Set<string>(rule.instanceIds)].filter((id) => id !== record.primaryInstanceId)
  const count = Math.min(rule.count, listed.length)
  const needed = listed.length - count + 1
  const seen = listed.flatMap((id) => {
    const a = answers.find((answer) => answer.instanceId === id)
    if (!a || a.end === null || (a.state !== 'isolated' && a.state !== 'fenced')) return []
    const on = place(record, a)
    return on ? [{ a, reach: on.reach }] : []
  })
  const names = seen.map(({ a }) => `"${a.name}"`).join(', ')
  if (listed.length === 0 || seen.length < needed)
    return {
      unseen: [
        {
          code: 'candidate.quorum_unseen',
          message: `only ${seen.length} of ${listed.length} synchronous standbys can be seen`,
          detail: `${needed} have to be compared to know who holds every acknowledged commit.`,
          hint: 'Bring another synchronous standby back, or accept a loss.',
        },
      ],
      ahead: [],
      because: [],
    }
  const ahead = seen.flatMap(({ a, reach }) => {
    const bytes = lsnDistance(relate(candidate.end, reach)?.until, reach.lsn) as number
    return bytes > 0 ? [{ name: a.name, bytes }] : []
  })
  return {
    unseen: null,
    ahead,
    because: [
      `Each commit waited for ${count} of ${listed.length} ${listed.length === 1 ? 'standby' : 'standbys'}, so any ${needed} of them together ${needed === 1 ? 'holds' : 'hold'} every commit. ${names} ${seen.length === 1 ? 'receives' : 'receive'} no more WAL, and "${candidate.name}" lacks none of timeline ${timeline.timeline} that ${seen.length === 1 ? 'it holds' : 'they hold'}.`,
    ],
  }
}

/** Words for a database or a role with a level of its own. */
export function scopeWords({ database, role, commitMode }: CommitModeScope): string {
  const of = [role === null ? null : `role "${role}"`, database === null ? null : `database "${database}"`]
  return `${of.filter(Boolean).join(' in ')} (synchronous_commit = ${commitMode})`
}

/** Databases and roles that commit without waiting for standbys, among those with a level of their own. */
export const withoutWaiting = (scopes: readonly CommitModeScope[]): CommitModeScope[] =>
  scopes.filter(({ commitMode }) => !waits(levelOf(commitMode)))

/** PostgreSQL takes every word for a boolean, too. */
function levelOf(word: string): string {
  const level = word.trim().toLowerCase()
  if (CommitMode.options.includes(level as CommitMode)) return level
  return /^(t|tr|tru|true|y|ye|yes|1)$/.test(level) ? 'on' : 'off'
}

function levelsInDoubt({ weaker }: HoldingsRecord): Fault[] {
  if (weaker === null)
    return [
      {
        code: 'commits.levels_unknown',
        message: 'whether some database or role commits without waiting for standbys is unknown',
        detail: 'The primary had not reported it.',
        hint: 'Accept an unknown loss, or bring the host of the primary back.',
      },
    ]
  const names = withoutWaiting(weaker).map(scopeWords)
  if (names.length === 0) return []
  return [
    {
      code: 'commits.weaker',
      message: `commits of ${names.join(', ')} wait for no standby`,
      detail: 'What they acknowledged last may be on the former primary alone.',
      hint: 'Accept an unknown loss, or bring the host of the primary back.',
    },
  ]
}

function prove({ record, candidate }: Case, accounts: readonly Account[], asked: AskedMember[]): Proof {
  const found = accounts.flatMap((a) => (a.covers === null ? [] : [a]))
  const covers = found.some((a) => a.covers === 'standbys') ? 'standbys' : 'disk'
  const off = (record.weaker ?? []).filter(({ commitMode }) => levelOf(commitMode) === 'off').map(scopeWords)
  const ofCluster = record.commitMode === 'off' ? ['the cluster (synchronous_commit = off)'] : []
  const unknown = record.weaker === null ? ['databases and roles with synchronous_commit = off'] : []
  return {
    candidate: candidate.name,
    covers,
    because: found.length > 0 ? found.flatMap((a) => a.because) : [`"${candidate.name}" is the only one.`],
    except: covers === 'disk' ? [...ofCluster, ...off, ...unknown] : [],
    provided: found.flatMap((a) => a.provided ?? []),
    floor: record.floor === true,
    asked,
  } as Proof
}

function askedMember(a: Answer, candidate: Answer): AskedMember {
  const relation = relate(a.end, candidate.end)
  return {
    name: a.name,
    hostName: a.hostName,
    state: a.state,
    end: a.end,
    relation: relation?.kind ?? 'unknown',
    beyondBytes: relation ? lsnDistance(relation.until, a.end?.lsn) : null,
  }
}

/** A reason why nothing is proven, as sentences. */
export const doubtSentences = ({ message, detail }: Fault): string =>
  [`${message[0]?.toUpperCase()}${message.slice(1)}.`, detail].filter(Boolean).join(' ')

/** What a proof says, in one sentence: no more than it covers. */
export function proofSentence({ candidate, covers, except, provided, floor }: Proof): string {
  const condition = provided.length > 0 ? `, provided that ${provided.join(' and ')}` : ''
  if (covers === 'standbys' && floor)
    return `"${candidate}" holds every commit that was acknowledged${condition}: each waited for standbys, since no session could commit with less.`
  if (covers === 'standbys') return `"${candidate}" holds every commit that waited for standbys${condition}.`
  if (except.length > 0)
    return `"${candidate}" holds every commit that waited for its primary's disk; commits of ${except.join(', ')} may not have been there yet.`
  return `"${candidate}" holds every commit that was acknowledged: nothing is lost.`
}
