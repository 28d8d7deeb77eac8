'use client'
import { parseTimeRange, type TimeRange, writeTimeRange } from '@floe/ui'
import { useSearchParams } from 'next/navigation'
import { useCallback, useMemo } from 'react'

/** The page's time range, kept in its address: sharing the address shares the view, Back undoes a zoom. */
export function useTimeRange(): [TimeRange, (range: TimeRange) => void] {
  const params = useSearchParams()
  const text = params.toString()
  const range = useMemo(() => parseTimeRange(new URLSearchParams(text)), [text])
  const change = useCallback((next: TimeRange) => {
    const query = writeTimeRange(new URLSearchParams(window.location.search), next).toString()
    // the router follows the browser's history; nothing has to be asked of the server
    window.history.pushState(null, '', query ? `?${query}` : window.location.pathname)
  }, [])
  return [range, change]
}
