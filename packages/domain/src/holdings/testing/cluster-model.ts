import type { InstanceId } from '../../ids'
import type { Lsn } from '../../lsn'
import type { CommitModeScope } from '../../replication'
import {
  type Answer,
  type HoldingsRecord,
  judgeHoldings,
  type SynchronousRule,
  type Verdict,
} from '../verdict'
import type { Timeline, WalPosition } from '../wal-position'

/** Numbers that a history is made of: from a seed, or those of an earlier one, zeros when they are used up. */
export class Choices {
  readonly taken: number[] = []
  #state: number
  readonly #replayed: readonly number[] | null
  constructor(from: number | readonly number[]) {
    this.#replayed = typeof from === 'number' ? null : from
    this.#state = typeof from === 'number' ? (Math.imul(from, 2654435761) ^ 0x9e3779b9) | 1 : 1
  }

  /** 0 … n - 1. */
  of(n: number): number {
    let value: number
    if (this.#replayed) value = (this.#replayed[this.taken.length] ?? 0) % n
    else {
      this.#state ^= this.#state << 13
      this.#state ^= this.#state >>> 17
      this.#state ^= this.#state << 5
      value = (this.#state >>> 0) % n
    }
    this.taken.push(value)
    return value
  }

  /** True once in n. */
  once(n: number): boolean {
    return this.of(n) === n - 1
  }

  pick<T>(from: readonly T[]): T | undefined {
    return from.length > 0 ? from[this.of(from.length)] : undefined
  }
}

const RECORD_BYTES = 8

/** A record of WAL, with its position. `line`: all records before it and itself. */
type WalRecord = { lsn: number; timeline: Timeline; position: WalPosition; line: readonly WalRecord[] }
/** A commit whose client was told so. */
type Acknowledged = { at: WalRecord; by: Member; waited: boolean; off: boolean; excused: boolean }

type Member = {
  id: string
  /** `standby` and `fenced` as the control database has it. */
  role: 'primary' | 'standby' | 'fenced'
  up: boolean
  /** It takes writes, whatever the control database says. */
  writes: boolean
  /** The end of its WAL in memory and on disk. */
  end: WalRecord
  flushed: WalRecord
  timeline: Timeline
  follows: Member | null
  isolated: boolean
  // of one that takes writes
  rule: SynchronousRule
  confirmed: Map<Member, WalRecord>
  waiting: WalRecord[]
  /** It was given up by a failover that proved that it can acknowledge no commit that waits any more. */
  provenSilent: boolean
  fenceOrdered: boolean
}

/** What the verdict says against what was acknowledged. */
export class Violation extends Error {}

const lsn = (n: number) => `0/${n.toString(16).toUpperCase()}` as Lsn
function recordAfter(before: WalRecord | null, timeline: Timeline): WalRecord {
  const at = before ? before.lsn + RECORD_BYTES : 16
  const record = { lsn: at, timeline, position: { ...timeline, lsn: lsn(at) }, line: [] as WalRecord[] }
  record.line = [...(before?.line ?? []), record]
  return record
}
const has = (end: WalRecord, record: WalRecord): boolean => end.line[record.line.length - 1] === record

/** How many verdicts of each sort were compared, so that a test can tell that none was left out. */
export type Seen = Record<string, number>

/**
 * A cluster as it could be: clients that commit at several levels, standbys that come and go, links that break, sets of
 * synchronous standbys that change, promotions that are begun and succeed or fail, seen or unseen. It knows of every
 * commit that was acknowledged and where, so that each verdict can be compared with the truth.
 */
export class ClusterModel {
  readonly seen: Seen
  readonly story: string[] = []
  readonly #c: Choices
  readonly #judge: typeof judgeHoldings
  readonly #members: Member[] = []
  readonly #cut = new Set<string>()
  /** Members that the console does not reach. */
  readonly #unreached = new Set<Member>()
  readonly #acknowledged: Acknowledged[] = []
  readonly #timelines: Timeline[] = []
  #primary: Member
  #timeline: Timeline
  #unsettled: Member[] = []
  readonly #from = new Map<Member, WalRecord>()
  #rules: SynchronousRule[]
  #weaker: CommitModeScope[] = []

  constructor(choices: Choices, seen: Seen = {}, judge: typeof judgeHoldings = judgeHoldings) {
    this.#c = choices
    this.seen = seen
    this.#judge = judge
    const timeline: Timeline = { timeline: 1, ancestors: [] }
    const first = recordAfter(null, timeline)
    const count = 2 + choices.of(3)
    for (let i = 0; i < count; i++)
      this.#members.push({
        id: `m${i}`,
        role: i === 0 ? 'primary' : 'standby',
        up: true,
        writes: i === 0,
        end: first,
        flushed: first,
        timeline,
        follows: null,
        isolated: false,
        rule: null,
        confirmed: new Map(),
        waiting: [],
        provenSilent: false,
        fenceOrdered: false,
      })
    const [primary, ...standbys] = this.#members as [Member, ...Member[]]
    for (const m of standbys) m.follows = primary
    this.#primary = primary
    this.#timeline = timeline
    this.#timelines.push(timeline)
    primary.rule = this.#someRule()
    this.#rules = [primary.rule]
    this.#tell(() => `${count} members, commits wait for ${ruleWords(primary.rule)}`)
  }

  #tell(words: () => string): void {
    this.story.push(words())
  }

  #others = (m: Member) => this.#members.filter((o) => o !== m)

  #someRule(of = this.#others(this.#primary)): SynchronousRule {
    if (this.#c.once(6)) return null
    const listed = of.filter(() => !this.#c.once(4))
    return ruleOf(1 + this.#c.of(2), listed)
  }

  #linked = (a: Member, b: Member) => !this.#cut.has([a.id, b.id].sort().join())

  /** One thing happens. */
  step(): void {
    const c = this.#c
    switch (c.of(19)) {
      case 0:
      case 1:
      case 2:
      case 3:
        this.#write(c.pick(this.#members.filter((m) => m.up && m.writes)))
        return
      case 4:
      case 5:
      case 6:
      case 7:
      case 8:
        this.#replicate(c.pick(this.#members.filter((m) => m.up && m.follows && !m.isolated)))
        return
      case 9: {
        const [a, b] = [c.of(this.#members.length), c.of(this.#members.length)]
        const key = [`m${a}`, `m${b}`].sort().join()
        if (!this.#cut.delete(key)) this.#cut.add(key)
        this.#tell(() => `link ${key} ${this.#cut.has(key) ? 'cut' : 'healed'}`)
        return
      }
      case 10: {
        const m = c.pick(this.#members) as Member
        if (!this.#unreached.delete(m)) this.#unreached.add(m)
        this.#tell(() => `the console ${this.#unreached.has(m) ? 'loses' : 'reaches'} ${m.id}`)
        return
      }
      case 11:
        this.#crashOrStart(c.pick(this.#members) as Member)
        return
      case 12:
        this.#changeRule()
        return
      case 13:
        this.#supersede()
        return
      case 14:
        this.#weaker = this.#weaker.length > 0 ? [] : [{ database: null, role: 'batch', commitMode: 'local' }]
        this.#tell(() => `role batch ${this.#weaker.length > 0 ? 'commits locally' : 'waits again'}`)
        return
      case 15:
        this.#failover()
        return
      case 16:
        this.#switchover()
        return
      case 17:
        this.#rejoin(c.pick(this.#members.filter((m) => m !== this.#primary)))
        return
      default:
        for (const m of this.#members)
          if (m.fenceOrdered && !this.#unreached.has(m)) {
            this.#end(m)
            m.fenceOrdered = false
            this.#tell(() => `${m.id} is fenced, its console is back`)
          }
    }
  }

  #write(m: Member | undefined): void {
    if (!m) return
    const at = recordAfter(m.end, m.timeline)
    m.end = at
    const level = this.#c.of(8)
    const off = level === 7
    const local = level === 6
    if (!off) m.flushed = at
    if (off || local || m.rule === null) {
      this.#acknowledge(m, at, false, off)
      this.#tell(() => `${m.id} commits ${at.lsn} ${off ? 'off' : 'local'}: acknowledged`)
      return
    }
    m.waiting.push(at)
    this.#tell(() => `${m.id} commits ${at.lsn} on ${at.timeline.timeline}, waiting`)
    this.#confirm(m)
  }

  #acknowledge(by: Member, at: WalRecord, waited: boolean, off: boolean): void {
    const given = by !== this.#primary && !this.#unsettled.includes(by)
    if (given && waited && by.provenSilent && !has(this.#primary.flushed, at))
      throw new Violation(`${by.id} acknowledges ${at.lsn} after a failover that proved that it cannot`)
    this.#acknowledged.push({ at, by, waited, off, excused: given })
  }

  #replicate(m: Member | undefined): void {
    const from = m?.follows
    if (!m || !from?.up || !this.#linked(m, from) || !has(from.flushed, m.end) || from.flushed === m.end)
      return
    let next = from.flushed
    if (this.#c.once(3)) next = next.line[m.end.line.length] as WalRecord
    m.end = next
    m.flushed = next
    m.timeline = next.timeline
    this.#tell(() => `${m.id} receives ${next.lsn} from ${from.id}`)
    if (this.#c.once(4)) return
    from.confirmed.set(m, next)
    this.#confirm(from)
  }

  /** Tells clients of commits that enough standbys have. */
  #confirm(m: Member): void {
    const { rule } = m
    m.waiting = m.waiting.filter((at) => {
      const holders = (rule?.instanceIds ?? []).filter((id) => {
        const confirmed = m.confirmed.get(this.#members.find((o) => o.id === id) as Member)
        return confirmed && has(confirmed, at)
      })
      if (rule && holders.length < rule.count) return true
      this.#acknowledge(m, at, rule !== null, false)
      this.#tell(() => `${m.id} acknowledges ${at.lsn} (${holders.join(' ')})`)
      return false
    })
  }

  #crashOrStart(m: Member): void {
    if (m.up) {
      m.up = false
      m.end = m.flushed
      m.waiting = []
      m.confirmed.clear()
    } else if (m.role !== 'fenced') m.up = true
    this.#tell(() => `${m.id} is ${m.up ? 'up' : 'down'}`)
  }

  /** Another set for the record's primary: recorded first, then in force, where the console reaches it. */
  #changeRule(): void {
    const rule = this.#someRule()
    this.#rules = [...this.#rules, rule]
    const p = this.#primary
    const arrives = p.up && p.writes && !this.#unreached.has(p)
    if (arrives) {
      p.rule = rule
      this.#confirm(p)
    }
    this.#tell(() => `commits are to wait for ${ruleWords(rule)}${arrives ? '' : ', not arrived'}`)
  }

  /** The newest set is the only one once it is in force and has confirmed everything written up to then. */
  #supersede(): void {
    const p = this.#primary
    const rule = this.#rules.at(-1) ?? null
    if (!p.up || !p.writes || this.#unreached.has(p) || p.rule !== rule) return
    const holders = (rule?.instanceIds ?? []).filter((id) => {
      const confirmed = p.confirmed.get(this.#members.find((o) => o.id === id) as Member)
      return confirmed && has(confirmed, p.end)
    })
    if (rule && holders.length < rule.count) return
    this.#rules = [rule]
    this.#tell(() => `only ${ruleWords(rule)} counts from now on`)
  }

  #record(): HoldingsRecord {
    return {
      primaryInstanceId: this.#primary.id,
      timeline: this.#timeline,
      begun: this.#timelines.map((t) => ({
        timeline: t.timeline,
        begin: t.ancestors?.at(-1)?.end ?? lsn(0),
      })),
      unsettled: this.#unsettled.map((m) => ({
        instanceId: m.id as InstanceId,
        from: (this.#from.get(m) as WalRecord).position,
      })),
      rules: this.#rules,
      commitMode: 'on',
      weaker: this.#weaker,
    }
  }

  #mayLead = (m: Member) =>
    m !== this.#primary &&
    m.up &&
    !this.#unreached.has(m) &&
    (m.role === 'standby' || this.#unsettled.includes(m))

  /** What each member would answer a failover to the candidate; those that are out of reach are silent. */
  #answers(candidate: Member): Answer[] {
    return this.#members.map((m) => {
      if (this.#unreached.has(m)) return answerOf(m, 'silent')
      if (m === candidate) return answerOf(m, m.writes ? 'primary' : 'isolated')
      const open = this.#unsettled.includes(m)
      if (m === this.#primary || (open && m.writes)) return answerOf(m, 'fenced')
      if (!m.up || m.role === 'fenced' || m.writes) return answerOf(m, 'silent')
      return answerOf(m, 'isolated', open)
    })
  }

  /** Every verdict that could be asked for now, against the truth. */
  check(): number {
    let compared = 0
    for (const candidate of this.#members.filter(this.#mayLead)) {
      this.#compare(candidate, this.#answers(candidate))
      compared++
    }
    return compared
  }

  #compare(candidate: Member, answers: readonly Answer[]): Verdict {
    const verdict = this.#judge(this.#record(), answers, candidate.id)
    const note = (word: string) => {
      this.seen[word] = (this.seen[word] ?? 0) + 1
    }
    note(verdict.kind === 'proven' ? `proven by ${verdict.proof.covers}` : verdict.kind)
    if (this.#unsettled.length > 0) note(`unsettled, ${verdict.kind}`)
    if (this.#rules.length > 1) note(`several sets, ${verdict.kind}`)
    const lost = this.#acknowledged.filter((a) => !a.excused && !has(candidate.flushed, a.at))
    const fail = (words: string): never => {
      throw new Violation(
        `failover to ${candidate.id}: ${words}\nanswers: ${answers.map(answerWords).join('; ')}\nrecord: ${JSON.stringify(this.#record())}\nverdict: ${JSON.stringify(verdict)}`,
      )
    }
    if (lost.length > 0) note('something is lost')
    if (verdict.kind === 'proven') {
      const { covers } = verdict.proof
      const missed = lost.find((a) => (covers === 'disk' ? !a.off : a.waited))
      if (missed) fail(`proven, but ${missed.at.lsn} of timeline ${missed.at.timeline.timeline} is lost`)
      if (covers === 'standbys' && this.#weaker.length > 0) fail('proven, but a role commits locally')
      for (const p of [this.#primary, ...this.#unsettled])
        if (p !== candidate) this.#mustBeSilent(p, answers, fail)
    }
    if (verdict.kind === 'bounded') {
      const gone = new Set<WalRecord>()
      for (const { at, waited } of lost)
        for (const r of at.line) if (waited && !has(candidate.flushed, r)) gone.add(r)
      const bytes = gone.size * RECORD_BYTES
      if (bytes > verdict.lossBytes) fail(`at most ${verdict.lossBytes} bytes, but ${bytes} are lost`)
    }
    return verdict
  }

  /** A primary that was not fenced must find too few standbys to acknowledge a commit that waits. */
  #mustBeSilent(p: Member, answers: readonly Answer[], fail: (words: string) => never): void {
    const answer = answers.find((a) => a.instanceId === p.id)
    if (answer?.state !== 'silent' || !p.writes) return
    const left = (p.rule?.instanceIds ?? []).filter(
      (id) => answers.find((a) => a.instanceId === id)?.state === 'silent',
    )
    if (p.rule === null || left.length >= p.rule.count)
      fail(`proven, but ${p.id} can go on acknowledging by ${left.join(' ') || 'itself'}`)
  }

  #end(m: Member): void {
    m.up = false
    m.writes = false
    m.end = m.flushed
    m.waiting = []
    m.confirmed.clear()
  }

  #failover(): void {
    const candidate = this.#c.pick(this.#members.filter(this.#mayLead))
    if (!candidate) return
    const former = this.#primary
    const wasRunning = former.up && former.writes
    const answers = this.#answers(candidate)
    for (const m of this.#members) {
      const { state } = answers.find((a) => a.instanceId === m.id) as Answer
      if (state === 'fenced') this.#end(m)
      if (state === 'isolated') m.isolated = true
    }
    this.#tell(() => `failover to ${candidate.id}: ${answers.map(answerWords).join('; ')}`)
    const verdict = this.#compare(candidate, answers)
    if (verdict.kind !== 'proven' && this.#c.once(2)) {
      this.#tell(() => 'refused, taken back')
      this.#takeBack(former, wasRunning && !this.#unreached.has(former))
      return
    }
    const covered = verdict.kind === 'proven' ? verdict.proof.covers : null
    this.#promote(candidate, covered, wasRunning && !this.#unreached.has(former))
  }

  #takeBack(former: Member, restart: boolean): void {
    for (const m of this.#members)
      if (!this.#unreached.has(m) && m.role === 'standby' && !m.writes) {
        m.isolated = false
        m.follows = former
      }
    if (restart) {
      former.up = true
      former.writes = true
    }
  }

  /** A promotion is begun; it takes place or not, and the console learns which or not. */
  #promote(m: Member, covered: 'disk' | 'standbys' | null, mayRestart: boolean): void {
    const former = this.#primary
    const first = !this.#unsettled.includes(m)
    if (first) {
      this.#unsettled = [...this.#unsettled, m]
      this.#from.set(m, m.flushed)
    }
    const outcome = this.#c.of(6)
    const takesPlace = outcome < 4
    const known = outcome < 3 || outcome === 5
    if (takesPlace && !m.writes) {
      const newest = m.end.timeline
      m.timeline = {
        timeline: newest.timeline + 1 + (this.#c.once(3) ? 1 : 0),
        ancestors: [...(newest.ancestors ?? []), { timeline: newest.timeline, end: lsn(m.end.lsn) }],
      }
      m.writes = true
      m.follows = null
      m.confirmed = new Map()
      m.waiting = []
      m.rule = this.#someRule(this.#others(m).filter((o) => !this.#unreached.has(o)))
    }
    this.#tell(
      () =>
        `promotion of ${m.id} ${takesPlace ? `takes place, timeline ${m.timeline.timeline}, waits for ${ruleWords(m.rule)}` : 'does not take place'}, ${known ? 'seen' : 'unseen'}`,
    )
    if (!known) return
    if (!takesPlace) {
      // what is known of this promotion says nothing of one before
      if (first) this.#unsettled.filter((o) => o !== m)
      if (this.#unsettled.length === 0) this.#takeBack(former, mayRestart)
      return
    }
    for (const a of this.#acknowledged) {
      const taken = covered === 'disk' ? !a.off : covered === 'standbys' && a.waited
      if (!taken && !has(m.flushed, a.at)) a.excused = true
    }
    for (const gone of [former, ...this.#unsettled].filter((o) => o !== m)) {
      gone.role = 'fenced'
      gone.fenceOrdered = gone.up || this.#unreached.has(gone)
      gone.provenSilent = covered !== null
    }
    this.#timelines.push(m.timeline)
    m.role = 'primary'
    m.isolated = false
    m.provenSilent = false
    this.#primary = m
    this.#timeline = m.timeline
    this.#unsettled = []
    this.#rules = [m.rule]
    for (const o of this.#others(m))
      if (!this.#unreached.has(o) && o.role === 'standby' && o.up) {
        o.follows = m
        o.isolated = false
      }
  }

  /** The primary is stopped in order once the candidate has everything, and the candidate promoted. */
  #switchover(): void {
    const p = this.#primary
    const m = this.#c.pick(
      this.#members.filter(
        (o) => this.#mayLead(o) && !o.writes && o.follows === p && !o.isolated && has(p.end, o.end),
      ),
    )
    if (!m || !p.up || !p.writes || this.#unreached.has(p) || this.#unsettled.length > 0) return
    if (!this.#linked(p, m)) return
    p.flushed = p.end
    m.end = p.end
    m.flushed = p.end
    m.timeline = p.end.timeline
    this.#end(p)
    this.#tell(() => `switchover from ${p.id} to ${m.id} at ${m.end.lsn}`)
    this.#promote(m, 'disk', true)
  }

  /** A member is brought back as a standby of the record's primary. */
  #rejoin(m: Member | undefined): void {
    const p = this.#primary
    if (!m || !p.up || !p.writes || this.#unreached.has(p) || this.#unreached.has(m) || !this.#linked(p, m))
      return
    if (this.#unsettled.length > 0) return
    this.#end(m)
    m.end = p.flushed
    m.flushed = p.flushed
    m.timeline = p.flushed.timeline
    m.role = 'standby'
    m.up = true
    m.isolated = false
    m.follows = p
    m.fenceOrdered = false
    this.#tell(() => `${m.id} is rejoined at ${m.end.lsn}`)
  }
}

const answerOf = (m: Member, state: Answer['state'], promotionOver = false): Answer => ({
  instanceId: m.id,
  name: m.id,
  hostName: m.id,
  state,
  end: state === 'silent' ? null : m.flushed.position,
  promotionOver,
})
const ruleOf = (count: number, listed: readonly Member[]): SynchronousRule =>
  listed.length === 0
    ? null
    : { count: Math.min(count, listed.length), instanceIds: listed.map((m) => m.id as InstanceId) }
const ruleWords = (rule: SynchronousRule) =>
  rule === null ? 'no standby' : `any ${rule.count} of ${rule.instanceIds.join(' ')}`
const answerWords = ({ name, state, end }: Answer) =>
  `${name} ${state}${end ? ` ${end.timeline}@${Number.parseInt(end.lsn.slice(2), 16)}` : ''}`
