import { fault } from '@floe/domain'
import type { ConsoleAt } from './client'

/** Variables of the environment that name a console on another machine, and the API token for it. */
export const CONSOLE_URL = 'FLOE_CONSOLE_URL'
export const CONSOLE_TOKEN = 'FLOE_CONSOLE_TOKEN'

const loopback = /^(127\.\d+\.\d+\.\d+|localhost|\[::1\])$/

/**
 * The console that the environment names; null where it names none. A token is sent over TLS, or within this machine, and
 * never to where an answer redirects. Throws `usage.console`.
 */
export function consoleElsewhere(env: NodeJS.ProcessEnv): ConsoleAt | null {
  const { [CONSOLE_URL]: address, [CONSOLE_TOKEN]: token } = env
  if (address === undefined && token === undefined) return null
  if (!address || !token)
    throw fault('usage.console', `only one of ${CONSOLE_URL} and ${CONSOLE_TOKEN} is set`, {
      hint: 'Set both to use a console on another machine, or neither.',
    })
  if (!URL.canParse(address))
    throw fault('usage.console', `"${address}" is not the address of a console`, {
      hint: `Set ${CONSOLE_URL} to an address like https://floe.example.org.`,
    })
  const { protocol, hostname, origin } = new URL(address)
  if (protocol !== 'https:' && !(protocol === 'http:' && loopback.test(hostname)))
    throw fault('usage.console', `the token would be sent to "${origin}" without TLS`, {
      detail: 'Anybody on the way could read and use it.',
      hint: 'Put a proxy with TLS in front of the console, and name its address.',
    })
  if (!/^[\x21-\x7e]{16,200}$/.test(token))
    throw fault('usage.console', `${CONSOLE_TOKEN} does not hold an API token`, {
      hint: 'Create one in the console (page Account), or by "./floe token create" on its machine.',
    })
  return {
    origin,
    token,
    fetch: (input, call) => fetch(input, { ...(call as RequestInit), redirect: 'error' }),
  }
}
