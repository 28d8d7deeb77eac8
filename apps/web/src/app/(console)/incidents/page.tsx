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
        description="What needs a person, open ones first, and who is told of it."
      />
      <IncidentList />
      <Webhooks />
    </>
  )
}
