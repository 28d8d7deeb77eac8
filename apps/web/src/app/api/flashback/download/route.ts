import { downloadFlashback } from '@/server/download-flashback'
import { ports } from '@/server/ports'

export const dynamic = 'force-dynamic'

export const GET = (request: Request) => downloadFlashback(ports(), request)
