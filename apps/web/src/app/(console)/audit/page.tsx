import { PageHeader } from '@floe/ui'
import type { Metadata } from 'next'
import { AuditChain } from '@/features/audit/audit-chain'
import { AuditList } from '@/features/audit/audit-list'

export const metadata: Metadata = { title: 'Audit' }

export default function Page() {
  return (
    <>
      <PageHeader title="Audit" description="Every change and every refused request, newest first." />
      <AuditList />
      <AuditChain />
    </>
  )
}
