import { PageHeader } from '@floe/ui'
import type { Metadata } from 'next'
import { IncidentList } from '@/features/incident/incident-list'
import { Webhooks } from '@/features/incident/webhooks'

export const metadata: Metadata = { title: 'Incidents' }

export default function Page() {
  return (
    <>
      <PageHeader
        title="Incidents"
        description="What needs a person, open incidents first, and the endpoints that are notified."
      />
      <IncidentList />
      <Webhooks />
    </>
  )
}
