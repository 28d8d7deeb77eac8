import { bytesToLsn, type Lsn } from '@floe/domain'

/** `000000020000000A000000FE`: timeline, and the segment in two parts. */
export function walFileName(timeline: number, segment: bigint, segmentBytes: bigint): string {
  const perPart = 0x1_0000_0000n / segmentBytes
  return [BigInt(timeline), segment / perPart, segment % perPart]
    .map((part) => part.toString(16).toUpperCase().padStart(8, '0'))
    .join('')
}

/** The timeline and the segment of a file of WAL; null where the name is not one. */
export function parseWalFileName(
  name: string,
  segmentBytes: bigint,
): { timeline: number; segment: bigint } | null {
  const [, timeline, high, low] = /^([0-9A-F]{8})([0-9A-F]{8})([0-9A-F]{8})$/.exec(name) ?? []
  if (!timeline) return null
  const perPart = 0x1_0000_0000n / segmentBytes
  const part = BigInt(`0x${low}`)
  return part < perPart
    ? { timeline: Number.parseInt(timeline, 16), segment: BigInt(`0x${high}`) * perPart + part }
    : null
}

/** Where a segment begins. */
export const segmentBegin = (segment: bigint, segmentBytes: bigint): Lsn => bytesToLsn(segment * segmentBytes)
