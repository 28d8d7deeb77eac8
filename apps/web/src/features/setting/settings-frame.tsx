'use client'
import { TabBar, TabLink } from '@floe/ui'
import Link from 'next/link'
import { usePathname } from 'next/navigation'
import type { ReactNode } from 'react'
import { useInstance } from '../instance/instance-context'
import { DriftAlert } from './drift-alert'

const tabs = [
  { path: '', label: 'I/O' },
  { path: '/all', label: 'All settings' },
  { path: '/cluster', label: 'Cluster' },
  { path: '/history', label: 'History' },
] as const

/** The parts of the settings of an instance. */
export function SettingsFrame({ children }: { children: ReactNode }) {
  const { name, cluster } = useInstance()
  const path = usePathname()
  const base = `/instances/${name}/settings`
  const rest = path.split('/').slice(4).join('/')
  const shown = tabs.filter((tab) => tab.path !== '/cluster' || cluster.members > 1)
  return (
    <div className="flex flex-col gap-4">
      <TabBar label="Parts of the settings" inner>
        {shown.map((tab) => (
          <TabLink key={tab.path} current={tab.path === '' ? rest === '' : `/${rest}` === tab.path}>
            <Link href={`${base}${tab.path}`}>{tab.label}</Link>
          </TabLink>
        ))}
      </TabBar>
      <div>
        <DriftAlert />
        {children}
      </div>
    </div>
  )
}
