import type { Metadata } from 'next'
import { CreateInstance } from '@/features/instance/create-instance'

export const metadata: Metadata = { title: 'Create instance' }

export default function Page() {
  return <CreateInstance />
}
