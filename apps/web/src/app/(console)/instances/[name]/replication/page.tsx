import type { Metadata } from 'next'
import { Replication } from '@/features/cluster/replication'

export const metadata: Metadata = { title: 'Replication' }

export default function Page() {
  return <Replication />
}
