'use client'
import { useSyncExternalStore } from 'react'

/*
 * A browser opens few connections to one origin, so a page has one stream: what stands around every page (the bell) opens
 * one of its own only where the page itself has none.
 */
let held = 0
const readers = new Set<() => void>()
const tell = () => {
  for (const reader of readers) reader()
}

/** Says that the page has a stream, until the answer is called. */
export function holdLiveStream(): () => void {
  held++
  tell()
  return () => {
    held--
    tell()
  }
}

/** True while the page has no stream of its own. */
export function useNoLiveStream(): boolean {
  return useSyncExternalStore(
    (reader) => {
      readers.add(reader)
      return () => readers.delete(reader)
    },
    () => held === 0,
    () => false,
  )
}
