import { readFileSync } from 'node:fs'
import { replaceFile } from '@floe/host/replace-file'
import type { Counts } from './suite'

/** A green run, and the hash of everything that decided its result. */
export type RememberedRun = { key: string; passed: number; skipped: number; at: string }

/** How many are kept: one for each branch that somebody goes back to. */
const KEPT = 20

/** The green runs of a suite, the newest first, in a file of the cache. */
export class RememberedRuns {
  private readonly file: string

  constructor(file: string) {
    this.file = file
  }

  private read(): RememberedRun[] {
    try {
      return JSON.parse(readFileSync(this.file, 'utf8')) as RememberedRun[]
    } catch {
      // none yet; of a damaged file nothing is believed
      return []
    }
  }

  /** The green run under this key; null when there was none. */
  find(key: string): RememberedRun | null {
    return this.read().find((run) => run.key === key) ?? null
  }

  /**
   * Runs a suite and remembers it when it was whole and green, and when nothing that decides its result has changed
   * meanwhile. A run that skipped more than the last one that is remembered is not: something was missing. A failure of
   * whatever part makes it forget what it knew under the key.
   */
  async remembering(
    key: () => string | null,
    o: { whole: boolean; say: (line: string) => void; now?: () => Date },
    run: () => Promise<Counts>,
  ): Promise<Counts> {
    const before = key()
    const counts = await run()
    if (before === null) return counts
    const others = this.read().filter((known) => known.key !== before)
    if (counts.failed > 0 && others.length < this.read().length) this.write(others, o.say)
    if (!o.whole || counts.failed > 0 || counts.passed === 0 || key() !== before) return counts
    const last = this.read()[0]
    if (last && counts.skipped > last.skipped) {
      o.say(
        `not remembered: ${counts.skipped} skipped, and ${last.skipped} in the last run that is (if that is meant, remove ${this.file})`,
      )
      return counts
    }
    const { passed, skipped } = counts
    const at = (o.now?.() ?? new Date()).toISOString()
    this.write([{ key: before, passed, skipped, at }, ...others].slice(0, KEPT), o.say)
    return counts
  }

  /** A cache that cannot be written to costs the next run its time, and does not fail this one. */
  private write(runs: RememberedRun[], say: (line: string) => void): void {
    try {
      replaceFile(this.file, `${JSON.stringify(runs, null, 2)}\n`, { mode: 0o644 })
    } catch (error) {
      say(`could not write ${this.file}: ${error instanceof Error ? error.message : error}`)
    }
  }
}

/** `1999 passed on 2026-11-23 11:42 UTC (1 skipped; …)`: never counted as passed in the run that shows it. */
export function rememberedLine({ passed, skipped, at }: RememberedRun): string {
  const date = `${at.slice(0, 10)} ${at.slice(11, 16)} UTC`
  return `remembered: ${passed} passed on ${date} (${skipped} skipped; nothing that decides it has changed since; --all runs it again)`
}
