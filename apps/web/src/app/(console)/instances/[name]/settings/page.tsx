import type { Metadata } from 'next'
import { ProtectionCard } from '@/features/protection/protection-card'
import { IoSettings } from '@/features/setting/io-settings'

export const metadata: Metadata = { title: 'Settings' }

export default function Page() {
  return (
    <IoSettings>
      <ProtectionCard className="mb-3" />
    </IoSettings>
  )
}
