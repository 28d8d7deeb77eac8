import { type Answer, waitUntil as waitAtIntervals } from '@floe/host/wait'

const FIRST_PAUSE_MS = 15
const PAUSE_GROWS = 1.3
const LONGEST_PAUSE_MS = 150

/** What comes soon is seen soon; what takes its time is not asked forty times a second by processors that it needs itself. */
function growing(): () => number {
  let pauseMs = FIRST_PAUSE_MS / PAUSE_GROWS
  return () => {
    pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * PAUSE_GROWS)
    return pauseMs
  }
}

/** Waits as `waitUntil` of `@floe/host` does, with pauses that grow; `everyMs` where a test is after the very moment. */
export function waitUntil<T>(
  what: string,
  look: () => Promise<Answer<T>> | Answer<T>,
  boundMs = 45_000,
  everyMs?: number,
): Promise<T> {
  return waitAtIntervals(what, look, boundMs, everyMs ?? growing())
}
