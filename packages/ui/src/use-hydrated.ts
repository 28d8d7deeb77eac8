'use client'
import { useSyncExternalStore } from 'react'

const never = () => () => {}

/**
 * Whether the page's own code runs in the browser already. A form that the server rendered is submitted by the browser itself
 * until then, with all entries in the address: one that takes a secret has `method="post"`, and a button that waits for this.
 */
export function useHydrated(): boolean {
  return useSyncExternalStore(
    never,
    () => true,
    () => false,
  )
}
