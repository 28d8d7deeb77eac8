import { z } from 'zod'
import { Lsn } from './lsn'

/** As many torn blocks one list may name: 2 GB of pages. */
export const TORN_BLOCKS_MAX = 250_000
/** Of a page, in bytes. */
export const PAGE_BYTES = 8_192
/** Blocks in one file of a relation. */
export const SEGMENT_BLOCKS = 131_072
/** A block as a directory of copies holds it: five numbers and a length, the page, and a CRC-32. */
export const COPY_RECORD_BYTES = PAGE_BYTES + 28
/** Blocks in one piece, and bytes of WAL in one. */
export const PIECE_BLOCKS_MAX = 100
export const PIECE_WAL_BYTES = 1_048_576
/** Of one recovery; with segments of 16 MB that is 1 TB of WAL. */
export const COPIED_SEGMENTS_MAX = 65_536

const uint32 = z.number().int().min(0).max(0xffff_ffff)

/** A block by numbers alone; where it lies follows from them (`relationPath()`). */
export const BlockAddress = z.object({
  tablespace: uint32,
  database: uint32,
  relation: uint32.min(1),
  fork: z.number().int().min(0).max(3),
  block: uint32.max(0xffff_fffe),
})
export type BlockAddress = z.infer<typeof BlockAddress>
export type RelationFork = Omit<BlockAddress, 'block'>

/** What a crashed instance says of its torn pages, and of how far its files and its WAL reach. */
export const TornList = z.object({
  systemIdentifier: z.string().regex(/^\d{1,20}$/),
  role: z.enum(['primary', 'standby']),
  timeline: z.number().int().min(1).max(0xffff_ffff),
  /** Its files have all changes before it, and recovery begins there. */
  redo: Lsn,
  /** Of the WAL on its disk that its recovery needs. */
  end: Lsn,
  /** From where on a standby is consistent. */
  consistent: Lsn,
  segmentBytes: z.number().int().min(1_048_576).max(1_073_741_824),
  /** How many are torn. */
  blocks: z.number().int().min(0).max(TORN_BLOCKS_MAX),
  /** In the list's own order; `7 9-12` are five blocks. */
  relations: z
    .array(
      z.object({
        ...BlockAddress.omit({ block: true }).shape,
        blocks: z
          .string()
          .max(4_000_000)
          .regex(/^[\d -]+$/),
      }),
    )
    .max(TORN_BLOCKS_MAX),
  /** The lines about the instance itself, with their CRC, as its engine wrote them. */
  header: z.string().max(4_000),
  /** Checksum of its control file: any start changes that. */
  control: z.string().regex(/^[0-9a-f]{64}$/),
})
export type TornList = z.infer<typeof TornList>

/** The blocks of a list in their order; null where it does not name as many as it says, so that nothing is made up. */
export function tornBlocks(list: Pick<TornList, 'blocks' | 'relations'>): BlockAddress[] | null {
  const found: BlockAddress[] = []
  for (const { blocks, ...relation } of list.relations)
    for (const range of blocks.split(' ')) {
      const [, first, last = first] = /^(\d{1,10})(?:-(\d{1,10}))?$/.exec(range) ?? []
      const from = Number(first)
      const to = Number(last)
      if (first === undefined || to < from || to > 0xffff_fffe) return null
      if (found.length + (to - from + 1) > list.blocks) return null
      for (let block = from; block <= to; block++) found.push({ ...relation, block })
    }
  return found.length === list.blocks ? found : null
}

/** The relations of blocks that come in the order of a list. */
export function relationsOf(blocks: readonly BlockAddress[]): TornList['relations'] {
  const relations: (RelationFork & { ranges: [number, number][] })[] = []
  for (const { block, ...relation } of blocks) {
    const last = relations.at(-1)
    const same =
      last !== undefined &&
      last.relation === relation.relation &&
      last.fork === relation.fork &&
      last.database === relation.database &&
      last.tablespace === relation.tablespace
    const range = same ? last.ranges.at(-1) : undefined
    if (range && range[1] + 1 === block) range[1] = block
    else if (same) last.ranges.push([block, block])
    else relations.push({ ...relation, ranges: [[block, block]] })
  }
  return relations.map(({ ranges, ...relation }) => ({
    ...relation,
    blocks: ranges.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(' '),
  }))
}

/** What a base backup gave that was restored beside a stopped primary, up to the end of its WAL. */
export const RestoredPages = z.object({
  /** Its pages have all changes before this, and none after the end of the primary's WAL. */
  redo: Lsn,
  blocks: z.number().int().min(0).max(TORN_BLOCKS_MAX),
  warnings: z.array(z.string()),
})
export type RestoredPages = z.infer<typeof RestoredPages>

/** Distinguishes one block from another. */
export const blockKey = ({ tablespace, database, relation, fork, block }: BlockAddress): string =>
  `${tablespace}/${database}/${relation}/${fork}/${block}`

/** The tablespaces that lie in the data directory itself. */
const DEFAULT_TABLESPACE = 1663
const GLOBAL_TABLESPACE = 1664
const forkNames = ['', '_fsm', '_vm', '_init']

/** Where a relation lies below the data directory; null in a tablespace of its own, whose directory lies elsewhere. */
export function relationPath({ tablespace, database, relation, fork }: RelationFork): string | null {
  const name = `${relation}${forkNames[fork] ?? ''}`
  if (tablespace === GLOBAL_TABLESPACE) return `global/${name}`
  return tablespace === DEFAULT_TABLESPACE ? `base/${database}/${name}` : null
}

/** `base/5/16384, blocks 7 9-12`, as a person reads it. */
export const tornWords = (relation: TornList['relations'][number]): string =>
  `${relationPath(relation) ?? `relation ${relation.relation} of database ${relation.database} in tablespace ${relation.tablespace}`}, ${
    /^\d+$/.test(relation.blocks) ? 'block' : 'blocks'
  } ${relation.blocks.length > 200 ? `${relation.blocks.slice(0, 200)} …` : relation.blocks}`

/** What a person reads before a cluster is recovered: when it is for, what it does, and what it cannot. */
export const recoverWords = {
  when: 'For a cluster whose primary and standbys crashed at once, where each waits for torn pages, or for WAL, that only another member’s disk has. None of its members runs.',
  does: 'Every member is stopped. A standby gets the whole pages that it lacks, and the WAL up to the end, from the primary’s files, where those are torn as well from another standby’s, through the console; it starts with them, and then the primary takes its torn pages from it. Nothing is written to the primary’s files but what its own recovery writes.',
  cannot:
    'A page that is whole on no member cannot be brought back: it is named by relation and block before any page is changed, and the members stay stopped. No page is filled with zeroes. Then a base backup is needed; keep the data directories of all members.',
  backup:
    'A base backup of this cluster gives what is whole on no member, and loses nothing: it is restored beside the primary, on its host, and replays all WAL up to the primary’s end; pages that the primary’s disk does not have whole come from it. The WAL since the backup was begun has to be in the archive, as far as it is not in the backup or in the primary’s directory pg_wal. The copy takes the size of the backup on the disk of the primary unless the file system can share blocks, and is removed in the end. The primary’s own user has to be able to read both directories.',
} as const
