import { exportSamples } from '@/server/export-samples'
import { ports } from '@/server/ports'

export const dynamic = 'force-dynamic'

export const GET = (request: Request) => exportSamples(ports(), request)
