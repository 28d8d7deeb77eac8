import { isDatabaseReachable } from '@/server/database-check'
import { ports } from '@/server/ports'

export const dynamic = 'force-dynamic'

/** 200 when the console answers and reaches the control database, else 503. For the launcher and for monitors. */
export async function GET() {
  const { database, feeds } = ports()
  const reached = await isDatabaseReachable({ database })
  return Response.json(
    { web: 'ok', database: reached ? 'ok' : 'unreachable', liveInstances: feeds.size },
    { status: reached ? 200 : 503, headers: { 'cache-control': 'no-store' } },
  )
}
