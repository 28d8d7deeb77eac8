import type { Metadata } from 'next'
import { ClusterSettings } from '@/features/setting/settings-pages'

export const metadata: Metadata = { title: 'Settings of the cluster' }

export default function Page() {
  return <ClusterSettings />
}
