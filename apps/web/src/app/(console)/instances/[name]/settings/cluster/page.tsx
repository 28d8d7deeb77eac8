import type { Metadata } from 'next'
import { ClusterSettings } from '@/features/cluster/cluster-settings'

export const metadata: Metadata = { title: 'Settings of the cluster' }

export default function Page() {
  return <ClusterSettings />
}
