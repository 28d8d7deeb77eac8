import { createHash } from 'node:crypto'
import type { HostPackage } from '@floe/domain'
import type { Queryable } from '../database'

/** Packages of all upgrades together take so much of the control database. */
const STORED_BYTES_MAX = 1024 ** 3
/** An upload that no upgrade was asked for is dropped after this. */
const UNUSED_SECONDS = 3_600

/** Stores a piece of a package until it is installed; false where there is no room for more. One that is there stays. */
export async function storePackagePiece(
  on: Queryable,
  { digest, number, bytes }: { digest: string; number: number; bytes: Buffer },
): Promise<boolean> {
  const { rows } = await on.query<{ stored: string }>(
    'SELECT coalesce(sum(octet_length(bytes)), 0) AS stored FROM package_piece',
  )
  if (Number(rows[0]?.stored) + bytes.length > STORED_BYTES_MAX) return false
  await on.query(
    'INSERT INTO package_piece (digest, number, bytes) VALUES ($1, $2, $3) ON CONFLICT (digest, number) DO NOTHING',
    [digest, number, bytes],
  )
  return true
}

/** The bytes of a piece; undefined where it is not stored. */
export async function readPackagePiece(
  on: Queryable,
  digest: string,
  number: number,
): Promise<Buffer | undefined> {
  const { rows } = await on.query<{ bytes: Buffer }>(
    'SELECT bytes FROM package_piece WHERE digest = $1 AND number = $2',
    [digest, number],
  )
  return rows[0]?.bytes
}

/** Whether all of a package is stored, and is what it is said to be. */
export async function isPackageStored(
  on: Queryable,
  { digest, sizeBytes }: Pick<HostPackage, 'digest' | 'sizeBytes'>,
): Promise<boolean> {
  const hash = createHash('sha256')
  let size = 0
  for (let number = 0; size < sizeBytes; number++) {
    const bytes = await readPackagePiece(on, digest, number)
    if (!bytes) return false
    hash.update(bytes)
    size += bytes.length
  }
  return size === sizeBytes && hash.digest('hex') === digest
}

/** Drops pieces of a package, e.g. of one that is not what it was said to be. */
export async function dropPackage(on: Queryable, digest: string): Promise<void> {
  await on.query('DELETE FROM package_piece WHERE digest = $1', [digest])
}

/** Drops what no open upgrade needs any more, and uploads that no upgrade was asked for; answers how many pieces. */
export async function dropUnusedPackages(on: Queryable): Promise<number> {
  const { rowCount } = await on.query(
    `DELETE FROM package_piece p
      WHERE NOT EXISTS (SELECT FROM host_upgrade u
                         WHERE u."endedAt" IS NULL AND u.installed IS NULL
                           AND u.packages @> jsonb_build_array(jsonb_build_object('digest', p.digest)))
        AND (p."createdAt" < now() - make_interval(secs => $1)
             OR EXISTS (SELECT FROM host_upgrade u
                         WHERE u."createdAt" >= p."createdAt"
                           AND u.packages @> jsonb_build_array(jsonb_build_object('digest', p.digest))))`,
    [UNUSED_SECONDS],
  )
  return rowCount ?? 0
}
