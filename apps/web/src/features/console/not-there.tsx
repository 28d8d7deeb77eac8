'use client'
import { Button, Card, EmptyState, PageHeader } from '@floe/ui'
import type { LucideIcon } from 'lucide-react'
import Link from 'next/link'
import type { ReactNode } from 'react'

/** What a page shows whose address names something that does not exist, or does not any more. */
export function NotThere({
  title,
  what,
  icon,
  list,
  children = 'It may have been removed.',
}: {
  title: string
  /** The sentence, e.g. `Host "db9" does not exist`. */
  what: string
  icon: LucideIcon
  /** Where those that exist are. */
  list: { href: string; label: string }
  children?: ReactNode
}) {
  return (
    <>
      <PageHeader title={title} />
      <Card>
        <EmptyState
          icon={icon}
          title={what}
          action={
            <Button asChild>
              <Link href={list.href}>{list.label}</Link>
            </Button>
          }
        >
          {children}
        </EmptyState>
      </Card>
    </>
  )
}
