import type { Metadata } from 'next'
import { InstanceHistory } from '@/features/setting/settings-pages'

export const metadata: Metadata = { title: 'History of settings' }

export default function Page() {
  return <InstanceHistory />
}
