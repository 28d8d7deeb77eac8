import { PageHeader } from '@floe/ui'
import type { Metadata } from 'next'
import { OperationList } from '@/features/operation/operation-list'

export const metadata: Metadata = { title: 'Operations' }

export default function Page() {
  return (
    <>
      <PageHeader title="Operations" description="Every requested change, newest first." />
      <OperationList />
    </>
  )
}
