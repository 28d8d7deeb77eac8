'use client'
import { OperationId } from '@floe/domain'
import { useSearchParams } from 'next/navigation'
import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { keepInAddress } from '../console/address-choice'

/** What the page is about: which table of which database, as of which moment, and the operations that were begun for it. */
export type Target = {
  database: string | null
  /** `schema.name` */
  table: string | null
  /** ms since the epoch, to the microsecond */
  moment: number | null
  preview: OperationId | null
  flashback: OperationId | null
}

/** An operation belongs to the table and the moment that it was begun with. */
const dependents: Record<keyof Target, readonly (keyof Target)[]> = {
  database: ['table', 'moment', 'preview', 'flashback'],
  table: ['moment', 'preview', 'flashback'],
  moment: ['preview', 'flashback'],
  preview: [],
  flashback: [],
}
const names: Record<keyof Target, string> = {
  database: 'database',
  table: 'table',
  moment: 'at',
  preview: 'preview',
  flashback: 'flashback',
}

export function readTarget(params: URLSearchParams): Target {
  const at = params.get('at')
  const moment = at !== null && /^\d{1,15}(\.\d{1,3})?$/.test(at) ? Number(at) : null
  const operation = (name: string) => OperationId.safeParse(params.get(name)).data ?? null
  return {
    database: params.get('database') || null,
    table: params.get('table') || null,
    moment,
    preview: operation('preview'),
    flashback: operation('flashback'),
  }
}

/** The address with a changed target: what depends on a part that changes is left out, unless it is given too. */
export function writeTarget(params: URLSearchParams, change: Partial<Target>): URLSearchParams {
  const next = new URLSearchParams(params)
  const keys = Object.keys(change) as (keyof Target)[]
  for (const key of keys) for (const dependent of dependents[key]) next.delete(names[dependent])
  for (const key of keys) {
    const value = change[key]
    if (value === null || value === undefined) next.delete(names[key])
    else next.set(names[key], String(value))
  }
  return next
}

/**
 * The target of this page, kept in its address so that it can be shared and survives a reload. The router reports a changed
 * address some time later, and of several one after another; a key that is pressed meanwhile moves the moment that the one
 * before it has chosen.
 */
export function useTarget(): [Target, (change: Partial<Target>) => void] {
  const told = useSearchParams().toString()
  /** What was written and not reported yet, the oldest first. */
  const written = useRef<string[]>([])
  const [ahead, setAhead] = useState<string | null>(null)
  useEffect(() => {
    // what nobody wrote here is another way to this page
    const at = written.current.indexOf(told)
    written.current = at < 0 ? [] : written.current.slice(at + 1)
    if (written.current.length === 0) setAhead(null)
  }, [told])
  const text = ahead ?? told
  const target = useMemo(() => readTarget(new URLSearchParams(text)), [text])
  const change = useCallback((next: Partial<Target>) => {
    const before = written.current.at(-1) ?? new URLSearchParams(window.location.search).toString()
    const address = writeTarget(new URLSearchParams(before), next)
    if (address.toString() === before) return
    written.current.push(address.toString())
    setAhead(address.toString())
    keepInAddress(address)
  }, [])
  return [target, change]
}
