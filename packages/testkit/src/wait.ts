import { type Answer, growingPauses, waitUntil as waitAtIntervals } from '@floe/host/wait'

const FIRST_PAUSE_MS = 15
const LONGEST_PAUSE_MS = 150

/** Waits as `waitUntil` of `@floe/host` does, with pauses that grow; `everyMs` where a test is after the very moment. */
export function waitUntil<T>(
  what: string,
  look: () => Promise<Answer<T>> | Answer<T>,
  boundMs = 45_000,
  everyMs?: number,
): Promise<T> {
  return waitAtIntervals(what, look, boundMs, everyMs ?? growingPauses(FIRST_PAUSE_MS, LONGEST_PAUSE_MS))
}
