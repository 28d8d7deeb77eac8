/** A moment that a process of the engine writes down about once a second while it goes on, and the engine's clock when it was read. */
export type Heartbeat = { pid: number; at: string; serverMs: number }

type Seen = Heartbeat & { unchanged: number; lookedMs: number; goesOn: boolean | null }

/** Who is still found at the same moment when so much time has passed, by the engine's clock and by ours, does nothing. */
const STILL_MS = 4_000
/** Once is not enough: after a machine or this agent was paused the first look may come before the process has its turn. */
const STILL_LOOKS = 2

/**
 * Reports of processes that run whether they do anything, from what was read of them at several looks. It compares moments of one
 * clock with each other only, so that a wrong clock, or one that is put right meanwhile, means nothing.
 */
export class Heartbeats {
  readonly #seen = new Map<string, Seen>()

  /** Another look at a process, by a name of its own; null while it is not known, as at the first look. */
  look(name: string, beat: Heartbeat | null, lookedMs = performance.now()): boolean | null {
    const before = this.#seen.get(name)
    if (!beat) {
      this.#seen.delete(name)
      return null
    }
    if (!before || before.pid !== beat.pid || before.at !== beat.at || beat.serverMs < before.serverMs) {
      const goesOn = before?.pid === beat.pid && before.at !== beat.at ? true : null
      this.#seen.set(name, { ...beat, unchanged: 0, lookedMs, goesOn })
      return goesOn
    }
    before.unchanged++
    const still = Math.min(beat.serverMs - before.serverMs, lookedMs - before.lookedMs)
    if (before.unchanged >= STILL_LOOKS && still >= STILL_MS) before.goesOn = false
    return before.goesOn
  }

  /** What the last look showed of a process. */
  last(name: string, pid: number): boolean | null {
    const seen = this.#seen.get(name)
    return seen?.pid === pid ? seen.goesOn : null
  }
}
