import { createHash, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { fault, type Installation } from '@floe/domain'
import { checkoutDirectory, type Home, readSecret } from '../installation/home'
import type { StepReport } from '../progress/progress'
import { runProgram } from '../run-program'

/** A set-up link is good for a day; the next `up` makes another one. */
export const SETUP_LINK_HOURS = 24

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

function databaseEnvironment(home: Home, installation: Installation): NodeJS.ProcessEnv {
  const { user, name } = installation.controlDatabase
  const password = encodeURIComponent(readSecret(home, 'controlPassword'))
  return {
    ...process.env,
    DATABASE_URL: `postgresql://${user}:${password}@127.0.0.1:${installation.controlPort}/${name}`,
  }
}

/** Applies the migrations that the control database has not seen. */
export async function migrate(home: Home, installation: Installation, report: StepReport): Promise<void> {
  const db = join(checkoutDirectory(), 'packages/db')
  const { status, tail } = await runProgram(process.execPath, ['tools/migrate-deploy.mjs'], {
    cwd: db,
    env: databaseEnvironment(home, installation),
    onLine: (line) => report.log(line),
  })
  if (status !== 0)
    throw fault('control_database.not_migrated', 'could not migrate the control database', {
      detail: tail.slice(-8).join('\n'),
      hint: 'The database is as it was before the migration that failed.',
    })
}

/**
 * Registers the command line's token and, while there is no owner, a fresh set-up link. Answers the link's token, or null
 * when there is an owner. Only hashes reach the database.
 */
export async function offerSetup(home: Home, installation: Installation): Promise<string | null> {
  const token = randomBytes(24).toString('base64url')
  const { status, stdout, tail } = await runProgram(process.execPath, ['tools/installation-tokens.mjs'], {
    cwd: join(checkoutDirectory(), 'packages/db'),
    env: databaseEnvironment(home, installation),
    input: JSON.stringify({
      commandLineTokenHash: sha256(readSecret(home, 'cliToken')),
      setupTokenHash: sha256(token),
      setupHours: SETUP_LINK_HOURS,
    }),
  })
  if (status !== 0)
    throw fault('control_database.no_tokens', 'could not register the command line with the console', {
      detail: tail.slice(-8).join('\n'),
    })
  const answer = JSON.parse(stdout) as { ownerExists: boolean }
  return answer.ownerExists ? null : token
}
