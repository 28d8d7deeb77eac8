import type { Metadata } from 'next'
import { HostList } from '@/features/host/host-list'

export const metadata: Metadata = { title: 'Hosts' }

export default function Page() {
  return <HostList />
}
