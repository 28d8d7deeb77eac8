import { PAGE_BYTES } from '@floe/domain'

/** PostgreSQL's checksum of a page: 32 FNV-1a sums beside each other, begun by these, folded into one with the block's number. */
const begins = Uint32Array.of(
  ...[0x5b1f36e9, 0xb8525960, 0x02ab50aa, 0x1de66d2a, 0x79ff467a, 0x9bb9f8a3, 0x217e7cd2, 0x83e13d2c],
  ...[0xf8d4474f, 0xe39eb970, 0x42c6ae16, 0x993216fa, 0x7b093b5d, 0x98daff3c, 0xf718902a, 0x0b1c9cdb],
  ...[0xe58f764b, 0x187636bc, 0x5d7b3bb1, 0xe73de7de, 0x92bec979, 0xcca6c0b2, 0x304a0979, 0x85aa43d4],
  ...[0x783125bb, 0x6ca8eaa2, 0xe407eac6, 0x4b5cfc3e, 0x9fbf8c76, 0x15ca20be, 0xf2ca9fd3, 0x959bd756],
)
const PRIME = 16_777_619
/** Where a page's header has its checksum. */
const CHECKSUM_AT = 8
/** Where it says how far its line pointers reach: 0 in a page that nobody has used yet. */
const LOWER_AT = 12
const UPPER_AT = 14

/** The checksum that a page has to have as this block; what it holds as its own counts as zero. */
export function pageChecksum(page: Uint8Array, block: number): number {
  const view = new DataView(page.buffer, page.byteOffset, PAGE_BYTES)
  const sums = Uint32Array.from(begins)
  const add = (i: number, value: number) => {
    const mixed = ((sums[i] ?? 0) ^ value) >>> 0
    sums[i] = Math.imul(mixed, PRIME) ^ (mixed >>> 17)
  }
  for (let at = 0; at < PAGE_BYTES; at += 4) {
    const word = view.getUint32(at, true)
    // the checksum is the lower half of its word
    add((at / 4) % sums.length, at === CHECKSUM_AT ? (word & 0xffff_0000) >>> 0 : word)
  }
  for (let round = 0; round < 2; round++) for (let i = 0; i < sums.length; i++) add(i, 0)
  const folded = (sums.reduce((all, sum) => all ^ sum, 0) ^ block) >>> 0
  return (folded % 65_535) + 1
}

/** Whether a page is whole: its checksum is that of its content as this block, or nobody has used it and it is all zeroes. */
export function isWholePage(page: Uint8Array, block: number): boolean {
  const view = new DataView(page.buffer, page.byteOffset, PAGE_BYTES)
  if (view.getUint16(UPPER_AT, true) === 0) return page.every((byte) => byte === 0)
  return (
    view.getUint16(LOWER_AT, true) <= view.getUint16(UPPER_AT, true) &&
    view.getUint16(CHECKSUM_AT, true) === pageChecksum(page, block)
  )
}
