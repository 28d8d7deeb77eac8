import type { Metadata } from 'next'
import { Takeover } from '@/features/cluster/takeover'

export const metadata: Metadata = { title: 'Switch over' }

export default function Page() {
  return <Takeover />
}
