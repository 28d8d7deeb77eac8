import type { Metadata } from 'next'
import { InstanceOperations } from '@/features/instance/instance-operations'

export const metadata: Metadata = { title: 'Operations' }

export default function Page() {
  return <InstanceOperations />
}
