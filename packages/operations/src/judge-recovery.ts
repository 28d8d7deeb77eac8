import {
  type BlockAddress,
  blockKey,
  bytesToLsn,
  COPIED_SEGMENTS_MAX,
  COPY_RECORD_BYTES,
  compareLsn,
  type Fault,
  type Lsn,
  lsnToBytes,
  PAGE_BYTES,
  relationPath,
  relationsOf,
  type SourceApart,
  sharesFailure,
  type TornList,
  tornBlocks,
  tornWords,
} from '@floe/domain'

/** A member with what its host said of it. */
export type ListedMember = {
  instanceId: string
  name: string
  /** What it does not share with the primary. */
  apart: SourceApart | null
  /** Null where its engine had nothing to list; then `why` has its words. */
  list: TornList | null
  why: string | null
}

/** What one standby gets of the primary: blocks of its own list, in that order, and WAL from its end on. */
export type Recovery = {
  instanceId: string
  name: string
  blocks: number
  pageBytes: number
  timeline: number
  segmentBytes: number
  /** The first segment; the WAL goes on for so many bytes from its beginning. */
  firstSegment: number
  walBytes: number
  /** Up to where WAL is brought: the end of the primary's. */
  endLsn: Lsn
  /** How many of the blocks come from the disk of another standby, because they are torn on the primary's. */
  others: { name: string; blocks: number }[]
  /** How many of them a restored base backup gives, because they are torn on the primary's. */
  restored: number
}

/** Who gives a block of a standby's list; null: nobody has it whole. */
export type Given = { block: BlockAddress; from: ListedMember | null }

export type Judged = { kind: 'recover'; recovery: Recovery } | { kind: 'refused'; fault: Fault }

type Found =
  | { member: ListedMember; recovery: Recovery }
  | { member: ListedMember; why: string; lost: BlockAddress[]; hint?: string }

export type JudgeOptions = {
  /** A base backup is restored to the primary's end: it has every page, and no other standby is asked for one. */
  backup?: boolean
}

/**
 * Whether a standby can be had back by what lies on the primary's disk, and which (the decision of 2026-11-25, and R21 of the
 * engine's page_repair). Pure. What is in both lists is whole on neither side; the primary's list does not name all that is
 * torn there, so that each page is looked at again when it is read.
 */
export function judgeRecovery(
  clusterName: string,
  primary: ListedMember,
  standbys: readonly ListedMember[],
  options: JudgeOptions = {},
): Judged {
  const { list } = primary
  if (list === null)
    return refused('recover.not_needed', `primary "${primary.name}" has no torn pages`, {
      detail: `Its engine says: ${primary.why || 'nothing'}.`,
      hint: `Nothing was changed. Start it: "./floe instance start ${primary.name}", then its standbys.`,
    })
  if (list.role !== 'primary')
    return refused('recover.is_standby', `instance "${primary.name}" was a standby when it ended`, {
      hint: 'Nothing was changed. If another member was the primary, fail over to it.',
    })
  const found = standbys.map((member) => judgeStandby(primary, list, member, standbys, options))
  const usable = found
    .filter((f) => 'recovery' in f)
    .sort(
      (a, b) =>
        // a member that shares no failure with the primary comes first
        Number(sharesFailure(a.member.apart)) - Number(sharesFailure(b.member.apart)) ||
        // then one that needs no third disk
        Number(a.recovery.others.length > 0) - Number(b.recovery.others.length > 0) ||
        a.recovery.restored - b.recovery.restored ||
        a.recovery.pageBytes + a.recovery.walBytes - (b.recovery.pageBytes + b.recovery.walBytes) ||
        (a.member.name < b.member.name ? -1 : 1),
    )
  if (usable[0]) return { kind: 'recover', recovery: usable[0].recovery }
  const not = found.filter((f) => 'why' in f)
  const least = not
    .filter((f) => f.lost.length > 0)
    .sort((a, b) => a.lost.length - b.lost.length || (a.member.name < b.member.name ? -1 : 1))[0]
  if (least && not.every((f) => f.lost.length > 0))
    return {
      kind: 'refused',
      fault: wholeNowhere(clusterName, primary.name, least.member.name, list.end, least.lost),
    }
  return refused(
    'recover.no_standby',
    `no standby of cluster "${clusterName}" can take the primary’s pages`,
    {
      detail:
        not.length === 0
          ? 'It has no standby whose host answers.'
          : not.map((f) => `"${f.member.name}": ${f.why}.`).join(' '),
      hint: `Nothing was changed. ${not.find((f) => f.hint)?.hint ?? nothingElse(primary.name, list.end)}`,
    },
  )
}

const refused = (code: string, message: string, more: Pick<Fault, 'detail' | 'hint'>): Judged => ({
  kind: 'refused',
  fault: { code, message, ...more },
})

const nothingElse = (primary: string, end: string) =>
  `Keep the data directories of all members. A base backup and the WAL up to ${end}, which is in the directory pg_wal of "${primary}" and in its archive, lose nothing: restored as a standby, it can give "${primary}" its torn pages (docs/guide/several-hosts.md).`

/** The way on that loses nothing: what has to lie where, and the verb. */
const withBackup = (cluster: string, primary: string, end: string) =>
  `Keep the data directories of all members. A base backup loses nothing: put it on the host of "${primary}", with an archive of the WAL since it was begun (the WAL up to ${end} is in the directory pg_wal of "${primary}" as far as it has not been removed), let the user of "${primary}" read both, and run "./floe cluster recover ${cluster} --confirm ${primary} --backup DIRECTORY --wal DIRECTORY". What is whole nowhere then comes from the backup (docs/guide/several-hosts.md).`

/** What nobody has whole, by relation and block, and what can be done about it. Nobody makes pages of zeroes of it. */
export function wholeNowhere(
  clusterName: string,
  primary: string,
  standby: string,
  end: string,
  lost: readonly BlockAddress[],
): Fault {
  const relations = relationsOf(lost)
  const shown = relations.slice(0, 20).map(tornWords)
  return {
    code: 'recover.whole_nowhere',
    message: `${lost.length === 1 ? 'a page' : `${lost.length.toLocaleString('en-US')} pages`} of cluster "${clusterName}" ${lost.length === 1 ? 'is' : 'are'} whole neither on "${primary}" nor on "${standby}"`,
    detail: `${shown.join('; ')}${relations.length > shown.length ? `; and ${relations.length - shown.length} more relations` : ''}.`,
    hint: `No page was changed. ${withBackup(clusterName, primary, end)}`,
  }
}

const segmentOf = (position: bigint, bytes: number): number => Number(position / BigInt(bytes))

/**
 * Whose disk gives a standby each block of its list: the primary's, else that of another standby that begins recovery where
 * this one does, or later, and has no WAL that the primary lacks: its pages have all changes before that, and none that the
 * standby will not replay. Null where a list does not name as many blocks as it counts.
 */
export function giversOf(
  primary: ListedMember,
  member: ListedMember,
  standbys: readonly ListedMember[],
): Given[] | null {
  const [list, ofPrimary] = [member.list, primary.list]
  const blocks = list && tornBlocks(list)
  const torn = keysOf(ofPrimary)
  if (!list || !ofPrimary || !blocks || !torn) return null
  const others = standbys
    .filter((other) => other !== member && other.list && isGiver(other.list, list, ofPrimary))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((other) => {
      const keys = keysOf(other.list)
      return keys ? [{ other, keys }] : []
    })
  return blocks.map((block) => {
    const key = blockKey(block)
    if (!torn.has(key)) return { block, from: primary }
    return { block, from: others.find(({ keys }) => !keys.has(key))?.other ?? null }
  })
}

function keysOf(list: TornList | null): Set<string> | null {
  const blocks = list && tornBlocks(list)
  return blocks && new Set(blocks.map(blockKey))
}

const isGiver = (of: TornList, list: TornList, primary: TornList): boolean =>
  of.role === 'standby' &&
  of.systemIdentifier === primary.systemIdentifier &&
  of.timeline === primary.timeline &&
  compareLsn(of.end, primary.end) <= 0 &&
  compareLsn(of.redo, list.redo) >= 0

function judgeStandby(
  ofPrimary: ListedMember,
  primary: TornList,
  member: ListedMember,
  standbys: readonly ListedMember[],
  { backup = false }: JudgeOptions,
): Found {
  const { list } = member
  const primaryName = ofPrimary.name
  const not = (why: string, more: { lost?: BlockAddress[]; hint?: string } = {}): Found => ({
    member,
    why,
    lost: [],
    ...more,
  })
  if (list === null)
    return not('it was stopped in order and has no torn pages', {
      hint: `Start "${member.name}". If "${primaryName}" does not start after that, stop "${member.name}" with mode "immediate" and recover the cluster again.`,
    })
  if (list.role !== 'standby')
    return not('it was no standby when it ended', {
      hint: 'It may have been promoted: look at its log before anything else is done.',
    })
  if (list.systemIdentifier !== primary.systemIdentifier) return not('it is not a copy of the primary')
  if (list.timeline !== primary.timeline)
    return not(`it is on timeline ${list.timeline}, the primary on ${primary.timeline}`)
  if (list.segmentBytes !== primary.segmentBytes) return not('its WAL segments are of another size')
  if (compareLsn(list.end, primary.end) > 0)
    return not(`it has WAL up to ${list.end}, the primary only up to ${primary.end}`, {
      hint: `The primary has lost WAL that it had sent, so it must not go on: fail over to "${member.name}", and rejoin "${primaryName}" after that.`,
    })
  if (compareLsn(list.redo, primary.redo) > 0)
    return not(
      `its recovery begins at ${list.redo}, and pages of the primary have all changes only up to ${primary.redo}`,
    )
  const given = giversOf(ofPrimary, member, backup ? [] : standbys)
  if (given === null) return not('a list does not name as many blocks as it counts')
  const outside = given.find(({ block }) => relationPath(block) === null)?.block
  if (outside)
    return not(
      `it lacks pages in tablespace ${outside.tablespace}, which lies outside its data directory, from where nothing is brought`,
    )
  const lost = given.flatMap(({ block, from }) => (from === null ? [block] : []))
  if (lost.length > 0 && !backup)
    return not(`${lost.length.toLocaleString('en-US')} of its torn pages are torn on the primary, too`, {
      lost,
    })
  const others = standbys.flatMap((other) => {
    const blocks = given.filter(({ from }) => from === other).length
    return blocks > 0 ? [{ name: other.name, blocks }] : []
  })
  const firstSegment = segmentOf(lsnToBytes(list.end), list.segmentBytes)
  const upTo = pageEnd(lsnToBytes(primary.end))
  const walBytes =
    compareLsn(list.end, primary.end) < 0
      ? Number(upTo - BigInt(firstSegment) * BigInt(list.segmentBytes))
      : 0
  if (walBytes > COPIED_SEGMENTS_MAX * list.segmentBytes)
    return not(`it lacks ${COPIED_SEGMENTS_MAX} segments of WAL or more`)
  return {
    member,
    recovery: {
      instanceId: member.instanceId,
      name: member.name,
      blocks: given.length,
      pageBytes: given.length * COPY_RECORD_BYTES,
      timeline: list.timeline,
      segmentBytes: list.segmentBytes,
      firstSegment,
      walBytes,
      endLsn: bytesToLsn(lsnToBytes(primary.end)),
      others,
      restored: lost.length,
    },
  }
}

/** WAL is read by whole pages. */
const pageEnd = (position: bigint): bigint => {
  const page = BigInt(PAGE_BYTES)
  return ((position + page - 1n) / page) * page
}
