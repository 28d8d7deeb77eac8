import { PrismaPg } from '@prisma/adapter-pg'
import pg from 'pg'
import { PrismaClient } from './generated/prisma/client'

/** A pool or one of its connections: what a query needs to be asked on. */
export type Queryable = pg.Pool | pg.PoolClient
export type Transaction = pg.PoolClient

export type DatabaseOptions = {
  /** `postgresql://user:password@host:port/name` */
  connectionString: string
  /** Shown in pg_stat_activity. */
  applicationName?: string
  /** Most connections at once, default 10. */
  max?: number
  /** Called at errors of idle connections; they are replaced, so nothing needs to be done. */
  onIdleError?: (error: Error) => void
}

// types of arrays, which pg's own list of types leaves out
const FLOAT4_ARRAY: number = 1021
const FLOAT8_ARRAY: number = 1022

/** Arrays of numbers as JSON's own parser reads them: a fleet's samples are mostly that, and a general one takes ten times as long. */
function parseNumbers(text: string): (number | null)[] {
  try {
    return JSON.parse(`[${text.slice(1, -1).replaceAll('NULL', 'null')}]`)
  } catch {
    // infinity and NaN are no JSON
    return pg.types.getTypeParser(FLOAT8_ARRAY as never)(text) as (number | null)[]
  }
}

const types: pg.CustomTypesConfig = {
  getTypeParser: (oid, format) =>
    [FLOAT4_ARRAY, FLOAT8_ARRAY].includes(oid) && format !== 'binary'
      ? parseNumbers
      : pg.types.getTypeParser(oid, format as 'text'),
}

/**
 * The control database: Prisma for plain reads and writes, the pool for SQL that Prisma cannot say. Both share the same
 * connections. Connecting happens at the first query; `close()` waits for running ones.
 */
export function createDatabase(options: DatabaseOptions) {
  const pool = new pg.Pool({
    connectionString: options.connectionString,
    application_name: options.applicationName ?? 'floe',
    max: options.max ?? 10,
    connectionTimeoutMillis: 5_000,
    idleTimeoutMillis: 60_000,
    keepAlive: true,
    types,
  })
  // an idle connection that breaks (restart of the control database) would end the process if nobody listened
  pool.on('error', (error) => options.onIdleError?.(error))
  const prisma = new PrismaClient({ adapter: new PrismaPg(pool) })
  return {
    prisma,
    pool,
    async close() {
      await prisma.$disconnect()
      await pool.end()
    },
  }
}
export type Database = ReturnType<typeof createDatabase>

/** Runs `body` in one transaction: committed when it answers, rolled back when it throws. */
export async function inTransaction<T>(pool: pg.Pool, body: (tx: Transaction) => Promise<T>): Promise<T> {
  const tx = await pool.connect()
  let broken: Error | undefined
  // the pool does not listen while a connection is lent out, and one that breaks between two queries would end the process
  const onError = (error: Error) => {
    broken = error
  }
  tx.on('error', onError)
  try {
    await tx.query('BEGIN')
    const answer = await body(tx)
    await tx.query('COMMIT')
    return answer
  } catch (error) {
    await tx.query('ROLLBACK').catch((rollback: Error) => {
      broken = rollback
    })
    throw error
  } finally {
    tx.off('error', onError)
    tx.release(broken)
  }
}

/** PostgreSQL's SQLSTATE and constraint of an error, undefined where it is not one of PostgreSQL's. */
export function sqlError(error: unknown): { code: string; constraint: string | undefined } | undefined {
  if (error instanceof pg.DatabaseError && error.code)
    return { code: error.code, constraint: error.constraint }
  return undefined
}

/** True for an error that says nothing about the query: the database is away, starting, stopping or out of connections. */
export function isDatabaseAway(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code
  if (typeof code === 'string') {
    if (/^(08|57P0|53)/.test(code)) return true
    if (/^(ECONN|EPIPE|ENOENT|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH)/.test(code)) return true
  }
  const text = error instanceof Error ? error.message : ''
  return /Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error/.test(
    text,
  )
}
