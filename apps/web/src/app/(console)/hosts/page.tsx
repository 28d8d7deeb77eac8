import { PageHeader } from '@floe/ui'
import type { Metadata } from 'next'
import { HostList } from '@/features/host/host-list'

export const metadata: Metadata = { title: 'Hosts' }

export default function Page() {
  return (
    <>
      <PageHeader title="Hosts" description="Machines with an agent, as their agents last reported them." />
      <HostList />
    </>
  )
}
