import { enrol } from '@/server/enrol'
import { ports } from '@/server/ports'

export const dynamic = 'force-dynamic'

export const POST = (request: Request) => enrol(ports(), request)
