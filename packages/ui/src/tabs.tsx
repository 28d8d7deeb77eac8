'use client'
import { Tabs as RadixTabs } from 'radix-ui'
import type { ReactNode } from 'react'

/** Panels of which one is shown; arrow keys move between them. For tabs with addresses use TabBar. */
export function Tabs({
  label,
  tabs,
  value,
  onChange,
  defaultValue,
}: {
  label: string
  tabs: readonly { value: string; label: ReactNode; content: ReactNode }[]
  value?: string
  onChange?: (value: string) => void
  defaultValue?: string
}) {
  return (
    <RadixTabs.Root value={value} onValueChange={onChange} defaultValue={defaultValue ?? tabs[0]?.value}>
      <RadixTabs.List aria-label={label} className="flex gap-1 overflow-x-auto border-b border-line">
        {tabs.map((tab) => (
          <RadixTabs.Trigger
            key={tab.value}
            value={tab.value}
            className="-mb-px border-b-2 border-transparent px-3 py-2 text-sm font-medium whitespace-nowrap text-ink-muted hover:text-ink focus-visible:-outline-offset-2 data-[state=active]:border-accent-strong data-[state=active]:text-ink"
          >
            {tab.label}
          </RadixTabs.Trigger>
        ))}
      </RadixTabs.List>
      {tabs.map((tab) => (
        <RadixTabs.Content key={tab.value} value={tab.value} className="pt-4">
          {tab.content}
        </RadixTabs.Content>
      ))}
    </RadixTabs.Root>
  )
}
