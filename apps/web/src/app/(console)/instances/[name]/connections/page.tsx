import type { Metadata } from 'next'
import { Connections } from '@/features/shared-server/connections'

export const metadata: Metadata = { title: 'Connections' }

export default function Page() {
  return <Connections />
}
