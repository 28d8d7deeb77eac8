import type { Metadata } from 'next'
import { InstanceList } from '@/features/instance/instance-list'

export const metadata: Metadata = { title: 'Instances' }

export default function Page() {
  return <InstanceList />
}
