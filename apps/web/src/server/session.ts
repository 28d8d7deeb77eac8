import { headers } from 'next/headers'
import { redirect } from 'next/navigation'
import { actorOf } from './context'
import { ports } from './ports'
import type { Account } from './routers/account/account.types'

/** Who looks at this page; sends anyone without a session to the sign-in page. For layouts and pages on the server. */
export async function requireSession(): Promise<Account> {
  const requested = await headers()
  const actor = await actorOf(ports(), requested)
  if (actor) return actor
  const path = requested.get('x-floe-path')
  redirect(path && path !== '/' ? `/sign-in?next=${encodeURIComponent(path)}` : '/sign-in')
}
