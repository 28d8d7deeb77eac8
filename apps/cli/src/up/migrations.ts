import { createHash, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { controlDatabaseUrl, fault, type Installation } from '@floe/domain'
import { ownerEnvironment, toolEnvironment } from '../control-database/external'
import { OWNER, SUPERUSER } from '../control-database/initialise'
import { checkoutDirectory, type Home, readSecret } from '../installation/home'
import type { StepReport } from '../progress/progress'
import { runProgram } from '../run-program'

/** A set-up link is good for a day; the next `up` makes another one. */
export const SETUP_LINK_HOURS = 24

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

/**
 * What the tools of packages/db are told: a superuser's connection, and who is to own what they make; of a server that
 * Floe does not run, the owner's.
 */
function databaseEnvironment(home: Home, installation: Installation): NodeJS.ProcessEnv {
  const { url } = installation.controlDatabase
  if (url !== null) return ownerEnvironment(home, url)
  return {
    ...toolEnvironment(),
    DATABASE_URL: controlDatabaseUrl(installation, SUPERUSER),
    DATABASE_OWNER: OWNER,
  }
}

/** Applies the migrations that the control database has not seen, then what the roles of web and controller may do. */
export async function migrate(home: Home, installation: Installation, report: StepReport): Promise<void> {
  for (const tool of ['migrate-deploy.mjs', 'apply-grants.mjs']) {
    const { status, tail } = await runProgram(process.execPath, [`tools/${tool}`], {
      cwd: join(checkoutDirectory(), 'packages/db'),
      env: databaseEnvironment(home, installation),
      onLine: (line) => report.log(line),
    })
    if (status !== 0)
      throw fault('control_database.not_migrated', 'could not migrate the control database', {
        detail: tail.slice(-8).join('\n'),
        hint: 'The database is as it was before the migration that failed.',
      })
  }
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
