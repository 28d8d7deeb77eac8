import type { Metadata } from 'next'
import { Flashback } from '@/features/flashback/flashback'

export const metadata: Metadata = { title: 'Flashback' }

export default function Page() {
  return <Flashback />
}
