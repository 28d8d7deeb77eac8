'use client'
import { classNames } from '@floe/ui'
import { Database, HardDrive, ListChecks, type LucideIcon, ScrollText, Siren } from 'lucide-react'
import Link from 'next/link'
import { usePathname } from 'next/navigation'
import { useMayAdminister } from '../console/account-context'

type Place = { href: string; label: string; icon: LucideIcon }

const places: readonly Place[] = [
  { href: '/instances', label: 'Instances', icon: Database },
  { href: '/hosts', label: 'Hosts', icon: HardDrive },
  { href: '/operations', label: 'Operations', icon: ListChecks },
  { href: '/incidents', label: 'Incidents', icon: Siren },
]

const administratorsPlaces: readonly Place[] = [
  ...places,
  { href: '/audit', label: 'Audit', icon: ScrollText },
]

/** The console's places: beside the page on a wide screen, at its foot on a telephone. */
export function Navigation({ at }: { at: 'side' | 'foot' }) {
  const path = usePathname()
  const foot = at === 'foot'
  const shown = useMayAdminister() ? administratorsPlaces : places
  return (
    <nav
      aria-label={foot ? 'Places, at the foot' : 'Places'}
      className={
        foot
          ? 'fixed inset-x-0 bottom-0 z-30 border-t border-line bg-surface pb-[env(safe-area-inset-bottom)] md:hidden'
          : 'hidden w-48 shrink-0 border-r border-line bg-surface md:block'
      }
    >
      <ul className={foot ? 'grid auto-cols-fr grid-flow-col' : 'sticky top-12 flex flex-col gap-0.5 p-2'}>
        {shown.map(({ href, label, icon: Icon }) => {
          const current = path === href || path.startsWith(`${href}/`)
          return (
            <li key={href}>
              <Link
                href={href}
                aria-current={current ? (path === href ? 'page' : 'true') : undefined}
                className={classNames(
                  'flex items-center rounded-md font-medium focus-visible:-outline-offset-2',
                  foot ? 'flex-col gap-0.5 py-2 text-xs' : 'gap-2.5 px-2.5 py-1.5 text-sm',
                  current
                    ? foot
                      ? 'text-accent'
                      : 'bg-accent-soft text-accent'
                    : 'text-ink-muted hover:bg-hover hover:text-ink',
                )}
              >
                <Icon aria-hidden className="size-4" />
                {label}
              </Link>
            </li>
          )
        })}
      </ul>
    </nav>
  )
}
