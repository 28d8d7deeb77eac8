import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import {
  blockKey,
  COPIED_SEGMENTS_MAX,
  COPY_RECORD_BYTES,
  fault,
  formatBytes,
  lsnToBytes,
  PAGE_BYTES,
  PIECE_BLOCKS_MAX,
  PIECE_WAL_BYTES,
} from '@floe/domain'
import { freeBytes } from '../../host/owned-files'
import { makeDirectoryInTree, removeBelow, replaceInTree, writeInTree } from '../../host/tree'
import type { Instance } from '../instance'
import { walFileName } from '../wal/wal-file'
import { parseCopyRecord } from './read-pieces'
import { COPIES, parseTornHeader, readTornList } from './torn-list'

/** What is left free beside the copies. */
const SPARE_BYTES = 64 * 1024 * 1024

type Sent = { data: string; crc32: number }

const refuse = (detail: string) => fault('recover.piece_refused', 'the piece is refused', { detail })

/** What was sent, once its checksum says that it is what was read. */
function received({ data, crc32: sum }: Sent, maxBytes: number): Buffer {
  const bytes = Buffer.from(data, 'base64')
  if (bytes.length > maxBytes) throw refuse(`It has more than ${maxBytes} bytes.`)
  if (crc32(bytes) !== sum) throw refuse('Its CRC is not that of its bytes.')
  return bytes
}

function ownList(instance: Instance) {
  const list = readTornList(instance.layout.dataDirectory)
  if (list?.header.role !== 'standby')
    throw fault('recover.no_list', `standby "${instance.registered.name}" has no list of torn pages`, {
      hint: 'Recover the cluster again, which lists them again.',
    })
  return list
}

/** Removes what is there, whatever it is, and makes the directory again. Not one byte is taken for which there is no room. */
export async function beginCopies(instance: Instance, bytes: number): Promise<number> {
  ownList(instance)
  const { dataDirectory } = instance.layout
  await removeCopies(instance)
  const free = freeBytes(instance.layout.directory)
  if (free < bytes + SPARE_BYTES)
    throw fault('recover.disk_full', 'the standby’s disk has no room for the copies', {
      detail: `They take ${formatBytes(bytes + SPARE_BYTES)}; ${formatBytes(free)} are free.`,
      hint: 'Free space, then try again.',
    })
  makeDirectoryInTree(join(dataDirectory, COPIES), instance.user)
  makeDirectoryInTree(join(dataDirectory, COPIES, 'wal'), instance.user)
  return 0
}

/** Records of blocks, which have to be those of the standby's own list, from number `first` on. */
export function writePages(instance: Instance, first: number, piece: Sent): number {
  const bytes = received(piece, PIECE_BLOCKS_MAX * COPY_RECORD_BYTES)
  const { blocks } = ownList(instance)
  if (bytes.length === 0 || bytes.length % COPY_RECORD_BYTES !== 0)
    throw refuse('It is not made of whole records.')
  for (let i = 0; i < bytes.length / COPY_RECORD_BYTES; i++) {
    const block = parseCopyRecord(bytes.subarray(i * COPY_RECORD_BYTES, (i + 1) * COPY_RECORD_BYTES))
    const asked = blocks[first + i]
    if (block === null) throw refuse(`Record ${first + i} is damaged.`)
    if (asked === undefined || blockKey(asked) !== blockKey(block))
      throw refuse(`Record ${first + i} is of a block that this standby does not lack there.`)
  }
  writeInTree(
    instance.layout.dataDirectory,
    `${COPIES}/pages`,
    first * COPY_RECORD_BYTES,
    bytes,
    instance.user,
  )
  return bytes.length
}

/** Bytes of a segment: of the standby's own timeline, and not before the end of its own WAL. */
export function writeWal(
  instance: Instance,
  { timeline, segment, offset }: { timeline: number; segment: number; offset: number },
  piece: Sent,
): number {
  const bytes = received(piece, PIECE_WAL_BYTES)
  const { header } = ownList(instance)
  const first = Number(lsnToBytes(header.end) / BigInt(header.segmentBytes))
  if (timeline !== header.timeline)
    throw refuse(`It is of timeline ${timeline}, the standby on ${header.timeline}.`)
  if (segment < first || segment >= first + COPIED_SEGMENTS_MAX)
    throw refuse('It is of a segment that this standby does not lack.')
  if (bytes.length === 0 || offset % PAGE_BYTES !== 0 || bytes.length % PAGE_BYTES !== 0)
    throw refuse('It is not made of whole pages of WAL.')
  if (offset + bytes.length > header.segmentBytes) throw refuse('It reaches beyond its segment.')
  const name = walFileName(timeline, BigInt(segment), BigInt(header.segmentBytes))
  writeInTree(instance.layout.dataDirectory, `${COPIES}/wal/${name}`, offset, bytes, instance.user)
  return bytes.length
}

/** The primary's header, by which the engine takes the directory for a source; written whole, and last. */
export function writeOrigin(instance: Instance, text: string): number {
  const { header } = ownList(instance)
  const origin = parseTornHeader(text)
  if (origin?.role !== 'primary') throw refuse('It is not the header of a primary’s list.')
  for (const what of ['systemIdentifier', 'timeline', 'segmentBytes'] as const)
    if (origin[what] !== header[what]) throw refuse('It is of another system.')
  replaceInTree(join(instance.layout.dataDirectory, COPIES, 'origin'), text, instance.user)
  return text.length
}

/** Whatever lies under that name is gone after this; what it leads to is not touched. */
export async function removeCopies(instance: Instance): Promise<number> {
  await removeBelow(join(instance.layout.dataDirectory, COPIES), instance.user)
  return 0
}
