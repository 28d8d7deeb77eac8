import type { Metadata } from 'next'
import { Connect } from '@/features/instance/connect'

export const metadata: Metadata = { title: 'Connect' }

export default function Page() {
  return <Connect />
}
