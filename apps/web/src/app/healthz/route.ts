import { actorOf } from '@/server/context'
import { isDatabaseReachable } from '@/server/database-check'
import { ports } from '@/server/ports'

export const dynamic = 'force-dynamic'

/**
 * 200 when the console answers and reaches the control database, else 503. For the launcher and for monitors; how much is
 * watched is told to whoever is signed in.
 */
export async function GET(request: Request) {
  const own = ports()
  const reached = await isDatabaseReachable(own)
  const known = reached && (await actorOf(own, request.headers)) !== null
  return Response.json(
    { ok: reached, ...(known ? { liveInstances: own.feeds.size } : {}) },
    { status: reached ? 200 : 503, headers: { 'cache-control': 'no-store' } },
  )
}
