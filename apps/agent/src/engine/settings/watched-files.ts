import { lstatSync } from 'node:fs'
import type { SettingDrift } from '@floe/agent-contract'
import type { Log } from '@floe/host/log'
import { isThere } from '../../host/tree'
import type { InstanceLayout } from '../directory/layout'
import { AcceptedFiles } from './accepted-files'
import { driftOf, isSealed, pathOf, readFileTexts, settingsFiles } from './tracked-files'

/** An edit of a file of settings shows within this time; a look is three calls of stat. */
const FILES_MS = 2_000

function stampOf(path: string): string {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  return stat ? `${stat.ino}:${stat.size}:${stat.mtimeMs}` : '-'
}

type Surroundings = {
  instanceId: string
  layout: InstanceLayout
  stateDirectory: string
  /** Files of an instance that is being made or deleted are nobody's edit. */
  isSettled: () => boolean
  log: Log
  onChange: () => void
}

/** The files of settings of one instance: what they hold otherwise than Floe left them. */
export class WatchedFiles {
  readonly known: AcceptedFiles
  readonly #o: Surroundings
  #changing = false
  #drift: SettingDrift[] = []
  #seen = ''
  #seenAt = Number.NEGATIVE_INFINITY
  #unreadable: string | null = null

  constructor(o: Surroundings) {
    this.#o = o
    this.known = new AcceptedFiles(o.stateDirectory, o.instanceId)
  }

  /** What files set otherwise than Floe left them, as of the last look. */
  get drift(): readonly SettingDrift[] {
    return this.#drift
  }

  /** What keeps the files from being read; null where nothing does. */
  get unreadable(): string | null {
    return this.#unreadable
  }

  /** Runs what writes the files: what they hold meanwhile is no drift. */
  async whileChanging<T>(run: () => Promise<T>): Promise<T> {
    this.#changing = true
    try {
      return await run()
    } finally {
      this.#changing = false
      this.look(0)
    }
  }

  /** Notes that everything in the files is as Floe wants it, and that the engine is up with it where `good`. */
  accept(good: boolean): void {
    const texts = readFileTexts(this.#o.layout)
    this.known.accept(texts)
    if (good) this.known.proveGood(texts)
    this.#seen = ''
    this.look(0)
  }

  /** Looks at the files when one of them was written; at most every `everyMs`. */
  look(everyMs = FILES_MS): void {
    const now = performance.now()
    if (now - this.#seenAt < everyMs || this.#changing) return
    this.#seenAt = now
    const { layout, isSettled, instanceId, log, onChange } = this.#o
    // the directory is away while pg_rewind works on it, and between the two renames of a copy
    if (!isSettled() || !isThere(layout.dataDirectory)) return
    try {
      const seen = settingsFiles.map((file) => stampOf(pathOf(layout, file))).join(' ')
      if (seen === this.#seen) return
      const texts = readFileTexts(layout)
      this.#sayUnreadable(null)
      const { accepted } = this.known
      // what Floe itself wrote is accepted by that
      if (!accepted) this.known.accept(texts)
      else if (isSealed(texts['floe.conf']))
        this.known.accept({ ...accepted, 'floe.conf': texts['floe.conf'] })
      const drift = driftOf(this.known.accepted ?? texts, texts)
      this.#seen = seen
      if (JSON.stringify(drift) === JSON.stringify(this.#drift)) return
      this.#drift = drift
      log.info('settings.drift', { instanceId, names: drift.map((d) => d.name) })
      onChange()
    } catch (error) {
      // on a full disk, or with something else in a file's place: the next look shows it
      this.#seen = ''
      this.#sayUnreadable((error as Error).message)
    }
  }

  /** The report contains it always, the log once. */
  #sayUnreadable(reason: string | null): void {
    if (reason === this.#unreadable) return
    this.#unreadable = reason
    const { instanceId, log, onChange } = this.#o
    if (reason === null) log.info('settings.read_again', { instanceId })
    else log.warn('settings.not_read', { instanceId, reason })
    onChange()
  }
}
