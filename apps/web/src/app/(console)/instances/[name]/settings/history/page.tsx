import type { Metadata } from 'next'
import { SettingHistory } from '@/features/setting/setting-history'

export const metadata: Metadata = { title: 'History of settings' }

export default function Page() {
  return <SettingHistory />
}
