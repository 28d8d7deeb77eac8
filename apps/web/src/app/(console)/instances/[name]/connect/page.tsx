import type { Metadata } from 'next'
import { Connect } from '@/features/instance-page/connect'

export const metadata: Metadata = { title: 'Connect' }

export default function Page() {
  return <Connect />
}
