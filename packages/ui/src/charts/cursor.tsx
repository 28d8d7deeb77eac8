'use client'
import { createContext, type ReactNode, useContext, useMemo, useSyncExternalStore } from 'react'

/** The moment that the pointer is at, shared by all charts of a page without rendering any chart again. */
export type Cursor = {
  get: () => number | null
  set: (at: number | null) => void
  subscribe: (listener: () => void) => () => void
}

function createCursor(): Cursor {
  let at: number | null = null
  const listeners = new Set<() => void>()
  return {
    get: () => at,
    set: (next) => {
      if (next === at) return
      at = next
      for (const listener of listeners) listener()
    },
    subscribe: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

const CursorContext = createContext<Cursor | null>(null)

/** Charts within it show the same moment. */
export function ChartCursor({ children }: { children: ReactNode }) {
  const cursor = useMemo(createCursor, [])
  return <CursorContext.Provider value={cursor}>{children}</CursorContext.Provider>
}

/** The shared cursor, or one of its own where there is none. */
export function useCursor(): Cursor {
  const shared = useContext(CursorContext)
  const own = useMemo(createCursor, [])
  return shared ?? own
}

export function useCursorTime(cursor: Cursor): number | null {
  return useSyncExternalStore(cursor.subscribe, cursor.get, () => null)
}
