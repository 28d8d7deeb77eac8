import type { Metadata } from 'next'
import { headers } from 'next/headers'
import { redirect } from 'next/navigation'
import { safePath } from '@/auth/safe-path'
import { SignInForm } from '@/auth/sign-in-form'
import { actorOf } from '@/server/context'
import { ports } from '@/server/ports'

export const metadata: Metadata = { title: 'Sign in' }

export default async function SignInPage({ searchParams }: { searchParams: Promise<{ next?: string }> }) {
  const next = safePath((await searchParams).next)
  // a control database that is away must not take the sign-in page with it: the form says what is wrong
  const actor = await actorOf(ports(), await headers()).catch(() => null)
  if (actor) redirect(next)
  return <SignInForm next={next} />
}
