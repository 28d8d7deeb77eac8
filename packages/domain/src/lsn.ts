import { z } from 'zod'

/** A log sequence number as PostgreSQL prints it, `0/16B3748`. */
export const Lsn = z
  .string()
  .regex(/^[0-9A-Fa-f]{1,8}\/[0-9A-Fa-f]{1,8}$/)
  .brand<'Lsn'>()
export type Lsn = z.infer<typeof Lsn>

/** Position in bytes from the start of the WAL. */
export function lsnToBytes(lsn: Lsn): bigint {
  const [high, low] = lsn.split('/') as [string, string]
  return (BigInt(`0x${high}`) << 32n) + BigInt(`0x${low}`)
}

/** The position as PostgreSQL prints it. */
export function bytesToLsn(bytes: bigint): Lsn {
  const part = (n: bigint) => n.toString(16).toUpperCase()
  return `${part(bytes >> 32n)}/${part(bytes & 0xffff_ffffn)}` as Lsn
}

const parts = (lsn: string): [number, number] => {
  const slash = lsn.indexOf('/')
  return [Number.parseInt(lsn.slice(0, slash), 16), Number.parseInt(lsn.slice(slash + 1), 16)]
}

/** Below 0 where the first lies before the second, 0 where they are the same: the bytes between them. */
export function compareLsn(a: string, b: string): number {
  if (a === b) return 0
  const [highA, lowA] = parts(a)
  const [highB, lowB] = parts(b)
  return (highA - highB) * 0x1_0000_0000 + (lowA - lowB)
}
