import { databaseUnreachable, isDatabaseReachable } from '@/server/database-check'
import { ports } from '@/server/ports'

export const dynamic = 'force-dynamic'

async function handler(request: Request) {
  const response = await ports().auth.handler(request)
  // better-auth says nothing but 500 when the control database is away
  if (response.status < 500 || (await isDatabaseReachable(ports()))) return response
  return Response.json({ fault: databaseUnreachable }, { status: 503 })
}

export { handler as GET, handler as POST }
