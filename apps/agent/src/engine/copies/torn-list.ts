import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { BlockAddress, fault, relationsOf, TornList } from '@floe/domain'
import { closeOwnedFile, readOwnedBytes, readOwnedFileBelow } from '../../host/owned-files'
import { openBelow } from '../../host/tree'
import type { Instance } from '../instance'

/** In the data directory: what the engine wrote of its torn pages, and the directory of copies. */
export const TORN_LIST = 'page_repair.torn'
export const COPIES = 'page_repair.copies'

const CONTROL_BYTES = 8_192

/** The lines about an instance, in the order in which its engine writes them. */
const names = [
  'version',
  'system identifier',
  'role',
  'timeline',
  'redo',
  'end',
  'consistent',
  'segment size',
  'blocks',
] as const

export type TornHeader = Omit<TornList, 'relations' | 'control'>

/**
 * What a header says, from whomever it came; null where it is not one. No number is taken that has not all of its line, and
 * the CRC has to be that of the lines before it.
 */
export function parseTornHeader(text: string): TornHeader | null {
  const crcAt = text.indexOf('\ncrc32: ')
  const [, crc] = /^crc32: ([0-9A-F]{8})\n$/.exec(text.slice(crcAt + 1)) ?? []
  if (crcAt < 0 || crc === undefined || crc32(text.slice(0, crcAt + 1)) !== Number.parseInt(crc, 16))
    return null
  const lines = text.slice(0, crcAt).split('\n')
  const values = names.map((name, i) => {
    const line = lines[i] ?? ''
    return line.startsWith(`${name}: `) ? line.slice(name.length + 2) : ''
  })
  const [version, systemIdentifier, role, timeline, redo, end, consistent, segmentBytes, blocks] = values
  const number = (value: string | undefined) => (/^\d{1,19}$/.test(value ?? '') ? Number(value) : Number.NaN)
  if (lines.length !== names.length || version !== '1') return null
  const parsed = TornList.omit({ relations: true, control: true }).safeParse({
    systemIdentifier,
    role,
    timeline: number(timeline),
    redo,
    end,
    consistent,
    segmentBytes: number(segmentBytes),
    blocks: number(blocks),
    header: text,
  })
  return parsed.success ? parsed.data : null
}

const LINE = /^(\d{1,10}) (\d{1,10}) (\d{1,10}) (\d) (\d{1,10}) \S{1,200}$/

/** A list as an engine wrote it, or whoever else may write into that directory; null where it is not one. The paths in it count for nothing. */
export function parseTornList(text: string): { header: TornHeader; blocks: BlockAddress[] } | null {
  const crcAt = text.indexOf('\ncrc32: ')
  const end = crcAt < 0 ? -1 : text.indexOf('\n', crcAt + 1)
  const header = end < 0 ? null : parseTornHeader(text.slice(0, end + 1))
  if (header === null) return null
  const lines = text.slice(end + 1).split('\n')
  if (lines.pop() !== '' || lines.length !== header.blocks) return null
  const blocks: BlockAddress[] = []
  for (const line of lines) {
    const [, tablespace, database, relation, fork, block] = (LINE.exec(line) ?? []).map(Number)
    const parsed = BlockAddress.safeParse({ tablespace, database, relation, fork, block })
    if (!parsed.success) return null
    blocks.push(parsed.data)
  }
  return { header, blocks }
}

/** The list of an instance that is stopped; null where there is none, or what lies there is not one. */
export function readTornList(dataDirectory: string): { header: TornHeader; blocks: BlockAddress[] } | null {
  const text = readOwnedFileBelow(dataDirectory, TORN_LIST)
  return text === null ? null : parseTornList(text)
}

/** The same as it is told: by relations, with the checksum of the control file. */
export function toldTornList(dataDirectory: string): TornList | null {
  const list = readTornList(dataDirectory)
  return (
    list && { ...list.header, relations: relationsOf(list.blocks), control: controlChecksum(dataDirectory) }
  )
}

/** Of the control file, which every start changes. */
export function controlChecksum(dataDirectory: string): string {
  const fd = openBelow(dataDirectory, 'global/pg_control')
  if (fd === null) throw fault('instance.no_control_file', 'the instance has no control file')
  try {
    return createHash('sha256')
      .update(readOwnedBytes(fd, 0, CONTROL_BYTES))
      .digest('hex')
  } finally {
    closeOwnedFile(fd)
  }
}

/** Refuses an instance that may be started, or works: its files are read, or written, only while it rests by order. */
export function refuseAwake(instance: Instance): void {
  const { name, expected } = instance.registered
  if (expected === 'stopped' && !instance.works()) return
  throw fault('recover.not_stopped', `instance "${name}" is not stopped`, {
    detail:
      expected === 'stopped'
        ? 'A process of its engine works.'
        : 'Its agent would start it, because nobody ordered it to stop.',
    hint: 'Stop it first.',
  })
}
