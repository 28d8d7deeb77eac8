import type { Metadata } from 'next'
import { OperationPage } from '@/features/operation-page/operation-page'

export const metadata: Metadata = { title: 'Operation' }

export default async function Page({ params }: { params: Promise<{ operationId: string }> }) {
  return <OperationPage segment={decodeURIComponent((await params).operationId)} />
}
