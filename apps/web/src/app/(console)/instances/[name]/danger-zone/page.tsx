import type { Metadata } from 'next'
import { DangerZone } from '@/features/instance/danger-zone'

export const metadata: Metadata = { title: 'Danger zone' }

export default function Page() {
  return <DangerZone />
}
