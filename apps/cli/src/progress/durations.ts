import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { replaceFile } from '@floe/host/replace-file'

/** What steps took in earlier runs, in seconds: lines of `step seconds`, shared with the launcher's script. */
export class Durations {
  private readonly file: string
  private readonly seconds = new Map<string, number>()

  constructor(cacheDirectory: string) {
    this.file = join(cacheDirectory, 'durations')
    try {
      for (const line of readFileSync(this.file, 'utf8').split('\n')) {
        const [name, value] = line.split(' ')
        if (name && Number.isFinite(Number(value))) this.seconds.set(name, Number(value))
      }
    } catch {
      // nothing remembered yet
    }
  }

  /** Seconds that the step took last, else what was expected of it. */
  expected(name: string, otherwise: number): number {
    return this.seconds.get(name) ?? otherwise
  }

  /** The mean with what was known: a step that found its work done says little about the next one that does not. */
  remember(name: string, seconds: number): void {
    this.seconds.set(name, Math.round((seconds + this.expected(name, seconds)) / 2))
    try {
      replaceFile(this.file, [...this.seconds].map(([n, s]) => `${n} ${s}\n`).join(''), { mode: 0o644 })
    } catch {
      // an estimate is not worth failing for
    }
  }
}
