import { fault } from '@floe/domain'
import type { Ports } from './ports'

export const databaseUnreachable = {
  code: 'database.unreachable',
  message: 'could not reach the control database',
  hint: 'Check it with "./floe status". The console reconnects automatically once it answers.',
} as const

export async function isDatabaseReachable({ database }: Pick<Ports, 'database'>): Promise<boolean> {
  return database.pool
    .query('SELECT 1')
    .then(() => true)
    .catch(() => false)
}

/** Runs something of a library that hides why it failed; throws `database.unreachable` where that is why. */
export async function orDatabaseUnreachable<T>(
  ports: Pick<Ports, 'database'>,
  run: () => Promise<T>,
): Promise<T> {
  try {
    return await run()
  } catch (cause) {
    if (await isDatabaseReachable(ports)) throw cause
    throw fault(databaseUnreachable.code, databaseUnreachable.message, {
      hint: databaseUnreachable.hint,
      cause,
    })
  }
}
