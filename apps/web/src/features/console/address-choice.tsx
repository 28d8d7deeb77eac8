'use client'
import { Select } from '@floe/ui'
import { useId } from 'react'

/** Puts what a page shows into its address, without a step in the browser's history. */
export function keepInAddress(params: URLSearchParams) {
  const text = params.toString()
  window.history.replaceState(null, '', text ? `?${text}` : window.location.pathname)
}

/** A filter of one word, kept in the address. */
export function AddressChoice({
  label,
  name,
  value,
  options,
  words = {},
  className = 'w-28',
}: {
  label: string
  name: string
  /** The one that is chosen; null for all. */
  value: string | null
  options: readonly string[]
  /** What an option is called where that is not its own word. */
  words?: Readonly<Record<string, string>>
  className?: string
}) {
  const id = useId()
  return (
    <span className="flex items-center gap-2 text-xs text-ink-muted">
      <label htmlFor={id}>{label}</label>
      <Select
        id={id}
        className={className}
        value={value ?? ''}
        onChange={(event) => {
          const next = new URLSearchParams(window.location.search)
          if (event.target.value) next.set(name, event.target.value)
          else next.delete(name)
          keepInAddress(next)
        }}
      >
        <option value="">all</option>
        {options.map((option) => (
          <option key={option} value={option}>
            {words[option] ?? option}
          </option>
        ))}
      </Select>
    </span>
  )
}
