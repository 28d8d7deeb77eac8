'use client'
import { ToggleGroup } from 'radix-ui'
import type { ReactNode } from 'react'
import { classNames } from './class-names'

/** One of a few, all visible at once; arrow keys move between them. */
export function Segmented<T extends string>({
  label,
  value,
  onChange,
  choices,
  className,
}: {
  label: string
  value: T | null
  onChange: (value: T) => void
  choices: readonly { value: T; label: ReactNode; title?: string }[]
  className?: string
}) {
  return (
    <ToggleGroup.Root
      type="single"
      aria-label={label}
      value={value ?? ''}
      onValueChange={(next) => {
        const choice = choices.find((c) => c.value === next)
        if (choice) onChange(choice.value)
      }}
      className={classNames(
        'inline-flex h-8 items-stretch rounded-md border border-line-strong bg-surface p-0.5',
        className,
      )}
    >
      {choices.map((choice) => (
        <ToggleGroup.Item
          key={choice.value}
          value={choice.value}
          title={choice.title}
          className="rounded-sm px-2 text-xs font-medium text-ink-muted hover:text-ink data-[state=on]:bg-accent-soft data-[state=on]:text-accent"
        >
          {choice.label}
        </ToggleGroup.Item>
      ))}
    </ToggleGroup.Root>
  )
}
