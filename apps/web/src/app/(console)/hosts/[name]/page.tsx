import type { Metadata } from 'next'
import { HostPage } from '@/features/host/host-page'

type Params = { params: Promise<{ name: string }> }

export async function generateMetadata({ params }: Params): Promise<Metadata> {
  return { title: decodeURIComponent((await params).name) }
}

export default async function Page({ params }: Params) {
  return <HostPage name={decodeURIComponent((await params).name)} />
}
