import { crc32 } from 'node:zlib'
import {
  type BlockAddress,
  COPY_RECORD_BYTES,
  fault,
  PAGE_BYTES,
  relationPath,
  SEGMENT_BLOCKS,
} from '@floe/domain'
import { closeOwnedFile, readOwnedBytes } from '../../host/owned-files'
import { openBelow } from '../../host/tree'
import { walFileName } from '../wal/wal-file'
import { isWholePage } from './page-checksum'

/** In a record: the instance has no such block. */
const NO_BLOCK = 0xffff_ffff

/** A block as the directory of copies has it, in network byte order. A page that is left out is one that there is not. */
export function copyRecord(block: BlockAddress, page: Uint8Array | null): Buffer {
  const record = Buffer.alloc(COPY_RECORD_BYTES)
  const { tablespace, database, relation, fork } = block
  for (const [i, value] of [tablespace, database, relation, fork, block.block].entries())
    record.writeUInt32BE(value, i * 4)
  record.writeUInt32BE(page === null ? NO_BLOCK : PAGE_BYTES, 20)
  if (page !== null) record.set(page, 24)
  record.writeUInt32BE(crc32(record.subarray(0, COPY_RECORD_BYTES - 4)), COPY_RECORD_BYTES - 4)
  return record
}

/** What a record holds; null where its CRC is not that of what is before it, or its page is not whole. */
export function parseCopyRecord(record: Buffer): BlockAddress | null {
  if (record.readUInt32BE(COPY_RECORD_BYTES - 4) !== crc32(record.subarray(0, COPY_RECORD_BYTES - 4)))
    return null
  const [tablespace, database, relation, fork, block, length] = [0, 4, 8, 12, 16, 20].map((at) =>
    record.readUInt32BE(at),
  ) as [number, number, number, number, number, number]
  const page = record.subarray(24, 24 + PAGE_BYTES)
  const whole = length === PAGE_BYTES ? isWholePage(page, block) : length === NO_BLOCK
  return whole ? { tablespace, database, relation, fork, block } : null
}

/** Records of blocks of an instance that is stopped, and which of them are not whole. */
export function readPages(
  dataDirectory: string,
  blocks: readonly BlockAddress[],
): { bytes: Buffer; damaged: BlockAddress[] } {
  const records: Buffer[] = []
  const damaged: BlockAddress[] = []
  for (const block of blocks) {
    const page = readPage(dataDirectory, block)
    if (page !== null && (page === 'unreadable' || !isWholePage(page, block.block))) damaged.push(block)
    else records.push(copyRecord(block, page))
  }
  return { bytes: Buffer.concat(records), damaged }
}

/** Null where it has no such block. */
function readPage(dataDirectory: string, block: BlockAddress): Buffer | 'unreadable' | null {
  const path = relationPath(block)
  if (path === null)
    throw fault('recover.other_tablespace', 'pages outside the data directory are not brought', {
      detail: `Tablespace ${block.tablespace} lies elsewhere.`,
    })
  const segment = Math.floor(block.block / SEGMENT_BLOCKS)
  const fd = openBelow(dataDirectory, segment === 0 ? path : `${path}.${segment}`)
  if (fd === null) return null
  try {
    const page = readOwnedBytes(fd, (block.block % SEGMENT_BLOCKS) * PAGE_BYTES, PAGE_BYTES)
    return page.length === PAGE_BYTES ? page : null
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EIO') return 'unreadable'
    throw error
  } finally {
    closeOwnedFile(fd)
  }
}

export type WalPiece = {
  timeline: number
  segment: number
  segmentBytes: number
  offset: number
  length: number
}

/** Bytes of a segment. */
export function readWal(dataDirectory: string, piece: WalPiece): Buffer {
  const { timeline, segment, segmentBytes, offset, length } = piece
  const name = walFileName(timeline, BigInt(segment), BigInt(segmentBytes))
  const fd = openBelow(dataDirectory, `pg_wal/${name}`)
  const bytes = fd === null ? null : readAndClose(fd, offset, length)
  if (bytes?.length !== length)
    throw fault('recover.no_wal', `the primary has no WAL segment "${name}"`, {
      detail:
        bytes === null
          ? 'It has removed it, or never had it.'
          : 'The file is shorter than the engine leaves one.',
      hint: 'Copy the segment from an archive into the primary’s directory pg_wal, as its user, then try again.',
    })
  return bytes
}

function readAndClose(fd: number, offset: number, length: number): Buffer {
  try {
    return readOwnedBytes(fd, offset, length)
  } finally {
    closeOwnedFile(fd)
  }
}
