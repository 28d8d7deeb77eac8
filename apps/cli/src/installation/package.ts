import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { fault } from '@floe/domain'
import { z } from 'zod'
import { checkoutDirectory, type Home } from './home'

/** FLOE_HOME of a host whose Floe is a Debian package; the launcher and the package's unit say the same. */
export const PACKAGED_HOME = '/var/lib/floe-agent'
/** The unit that the package brings for it. */
const PACKAGED_UNIT = 'floe-agent.service'

const Package = z.object({ version: z.string() })

/** What the package says of itself where this is one; null in a checkout. */
export function packaged(): z.infer<typeof Package> | null {
  const file = join(checkoutDirectory(), 'floe-package.json')
  return existsSync(file) ? Package.parse(JSON.parse(readFileSync(file, 'utf8'))) : null
}

/** The unit that starts this host's agent where the package brings it; it is about one home only. */
export const packagedUnit = (home: Home): string | undefined =>
  packaged() !== null && home.directory === PACKAGED_HOME ? PACKAGED_UNIT : undefined

/** The engine that new instances get: the newest package's, by its own name, which stays when a newer one is installed. */
export function packagedEngine(): string {
  const current = join(checkoutDirectory(), 'engine/current')
  try {
    return realpathSync(current)
  } catch (cause) {
    throw fault('engine.not_installed', 'no engine is installed', {
      detail: `There is no "${current}".`,
      hint: 'Run as root: apt-get install floe-engine',
      cause,
    })
  }
}

/** What is said to people on a host that was made from packages: there the command is on PATH. */
export const spoken = (text: string): string =>
  packaged() === null ? text : text.replaceAll('./floe ', 'floe ')
