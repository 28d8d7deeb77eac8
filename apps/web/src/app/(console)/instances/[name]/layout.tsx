import type { Metadata } from 'next'
import type { ReactNode } from 'react'
import { InstanceFrame } from '@/features/instance/instance-frame'

type Params = { params: Promise<{ name: string }> }

export async function generateMetadata({ params }: Params): Promise<Metadata> {
  const name = decodeURIComponent((await params).name)
  return { title: { default: name, template: `%s · ${name} · Floe` } }
}

export default async function InstanceLayout({ params, children }: Params & { children: ReactNode }) {
  return <InstanceFrame segment={decodeURIComponent((await params).name)}>{children}</InstanceFrame>
}
