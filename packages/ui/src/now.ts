'use client'
import { useSyncExternalStore } from 'react'

let now = 0
let timer: ReturnType<typeof setInterval> | null = null
let skewMs = 0
const listeners = new Set<() => void>()

function tick() {
  now = Date.now() + skewMs
  for (const listener of listeners) listener()
}

function subscribe(listener: () => void) {
  listeners.add(listener)
  if (timer === null) {
    now = Date.now() + skewMs
    timer = setInterval(tick, 1_000)
  }
  return () => {
    listeners.delete(listener)
    if (listeners.size === 0 && timer !== null) {
      clearInterval(timer)
      timer = null
    }
  }
}

/**
 * The time in milliseconds, once a second, by the console's clock; one timer for the whole page. Null while the page is
 * rendered on the server, where no age is known.
 */
export function useNow(): number | null {
  const value = useSyncExternalStore(
    subscribe,
    () => now,
    () => 0,
  )
  return value === 0 ? null : value
}

/**
 * Says how far the browser's clock is from the console's, so that a laptop with a wrong clock does not show fresh
 * values as old. `consoleNow` is the console's time as just received.
 */
export function noteConsoleTime(consoleNow: number) {
  const skew = consoleNow - Date.now()
  // the answer's way takes time too: only a real difference counts, and small ones would make ages jump
  if (Math.abs(skew - skewMs) > 1_500) {
    skewMs = Math.abs(skew) > 1_500 ? skew : 0
    if (timer !== null) tick()
  }
}

/** The console's time now, outside of rendering. */
export function consoleTime(): number {
  return Date.now() + skewMs
}
