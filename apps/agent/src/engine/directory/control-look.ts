import type { ControlFile } from './control-file'

/** pg_controldata answers within some ms; a report is waited for by a controller for a few seconds. */
const CONTROL_MS = 1_000

type Reading = {
  /** Null where there is none. */
  read: () => Promise<ControlFile | null>
  /** It runs: what its file said before counts no more. */
  runs: () => boolean
  onChange: () => void
}

/**
 * What the control file of an instance says that does not run. One that hangs, as a pipe in its place does, holds up one
 * report for a moment and the next ones not at all: they report the other instances, too.
 */
export class ControlLook {
  readonly #o: Reading
  #control: ControlFile | null = null
  #reading: Promise<void> | null = null
  #hangs = false

  constructor(o: Reading) {
    this.#o = o
  }

  get control(): ControlFile | null {
    return this.#control
  }

  forget(): void {
    this.#control = null
  }

  /** At its end: waits for the file however long it takes. */
  async readAtEnd(): Promise<void> {
    this.#control = await this.#o.read().catch(() => null)
  }

  /** For a report: waits for a moment. */
  async lookForReport(): Promise<void> {
    if (this.#control !== null) return
    this.#reading ??= this.#o
      .read()
      .catch(() => null)
      .then((control) => {
        this.#reading = null
        // a look at an end that came meanwhile is newer than this
        if (control === null || this.#control !== null || this.#o.runs()) return
        this.#control = control
        if (this.#hangs) this.#o.onChange()
        this.#hangs = false
      })
    if (this.#hangs) return
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<'late'>((resolve) => {
      timer = setTimeout(() => resolve('late'), CONTROL_MS)
    })
    if ((await Promise.race([this.#reading, late])) === 'late') this.#hangs = true
    clearTimeout(timer)
  }
}
