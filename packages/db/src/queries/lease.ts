import type { Queryable } from '../database'

export type LeaseHold = { name: string; owner: string; token: string }

/**
 * Takes a named lease that nobody holds, or renews the own one. The token grows whenever the lease changes hands or was
 * lost in between, and stays while it is renewed in time. Undefined while somebody else holds it.
 */
export async function takeLease(
  on: Queryable,
  input: { name: string; owner: string; leaseMs: number },
): Promise<LeaseHold | undefined> {
  const { rows } = await on.query<LeaseHold>(
    `INSERT INTO lease AS l (name, owner, token, "expiresAt")
     VALUES ($1, $2, 1, clock_timestamp() + make_interval(secs => $3::float8 / 1000))
     ON CONFLICT (name) DO UPDATE
        SET owner = excluded.owner, "expiresAt" = excluded."expiresAt",
            token = CASE WHEN l.owner = excluded.owner AND l."expiresAt" > clock_timestamp() THEN l.token ELSE l.token + 1 END
      WHERE l.owner = excluded.owner OR l."expiresAt" <= clock_timestamp()
     RETURNING name, owner, token::text`,
    [input.name, input.owner, input.leaseMs],
  )
  return rows[0]
}

/** The end of a lease that ends now: the columns have milliseconds, and rounding up would let it go on for a moment. */
export const LEASE_ENDS_NOW = `date_trunc('milliseconds', clock_timestamp())`

/** Gives a lease back, so that another controller need not wait for its end. */
export async function releaseLease(on: Queryable, hold: LeaseHold): Promise<void> {
  await on.query(
    `UPDATE lease SET "expiresAt" = ${LEASE_ENDS_NOW} WHERE name = $1 AND owner = $2 AND token = $3`,
    [hold.name, hold.owner, hold.token],
  )
}

/** Owners that hold anything now, by the start of their name. */
export async function listLeaseOwners(on: Queryable, prefix: string): Promise<string[]> {
  const { rows } = await on.query<{ owner: string }>(
    `SELECT owner FROM lease WHERE starts_with(owner, $1) AND "expiresAt" > clock_timestamp()
     UNION SELECT "leaseOwner" FROM operation WHERE starts_with("leaseOwner", $1) AND "leaseExpiresAt" > clock_timestamp()`,
    [prefix],
  )
  return rows.map((row) => row.owner)
}

/** Ends every lease of owners that are known to be dead, so that nobody has to wait for them. */
export async function endLeasesOf(on: Queryable, owners: readonly string[]): Promise<void> {
  await on.query(
    `UPDATE lease SET "expiresAt" = ${LEASE_ENDS_NOW} WHERE owner = ANY ($1) AND "expiresAt" > clock_timestamp()`,
    [owners],
  )
  await on.query(
    `UPDATE operation SET "leaseExpiresAt" = ${LEASE_ENDS_NOW}
      WHERE "leaseOwner" = ANY ($1) AND "leaseExpiresAt" > clock_timestamp()`,
    [owners],
  )
}

/** Thrown by a write under a lease that has gone to somebody else; nothing was written. */
export class LeaseLostError extends Error {
  override readonly name = 'LeaseLostError'
  constructor(what: string) {
    super(`lease of ${what} is lost`)
  }
}

/** Makes the transaction fail unless the lease is still held; keeps it from changing hands until the transaction ends. */
export async function requireLease(tx: Queryable, hold: LeaseHold): Promise<void> {
  const { rowCount } = await tx.query(
    `SELECT 1 FROM lease WHERE name = $1 AND owner = $2 AND token = $3 AND "expiresAt" > clock_timestamp() FOR SHARE`,
    [hold.name, hold.owner, hold.token],
  )
  if (rowCount !== 1) throw new LeaseLostError(hold.name)
}
