import { OperationId } from '@floe/domain'
import type { Metadata } from 'next'
import { notFound } from 'next/navigation'
import { OperationPage } from '@/features/operation/operation-page'

export const metadata: Metadata = { title: 'Operation' }

export default async function Page({ params }: { params: Promise<{ operationId: string }> }) {
  const id = OperationId.safeParse((await params).operationId)
  if (!id.success) notFound()
  return <OperationPage operationId={id.data} />
}
