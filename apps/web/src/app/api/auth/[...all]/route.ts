import { ports } from '@/server/ports'

export const dynamic = 'force-dynamic'

const handler = (request: Request) => ports().auth.handler(request)

export { handler as GET, handler as POST }
