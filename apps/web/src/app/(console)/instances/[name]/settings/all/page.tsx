import type { Metadata } from 'next'
import { AllSettings } from '@/features/setting/settings-pages'

export const metadata: Metadata = { title: 'All settings' }

export default function Page() {
  return <AllSettings />
}
