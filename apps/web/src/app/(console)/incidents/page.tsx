import { PageHeader } from '@floe/ui'
import type { Metadata } from 'next'
import { IncidentPage } from '@/features/incident/incident-page'
import { Webhooks } from '@/features/incident/webhooks'

export const metadata: Metadata = { title: 'Incidents' }

export default function Page() {
  return (
    <>
      <PageHeader title="Incidents" description="What needs a person, and who is told of it." />
      <IncidentPage />
      <Webhooks />
    </>
  )
}
