import type { Metadata } from 'next'
import { IoSettings } from '@/features/setting/io-settings'

export const metadata: Metadata = { title: 'Settings' }

export default function Page() {
  return <IoSettings />
}
