import { randomUUID } from 'node:crypto'
import { listenForNotifications, type NotificationChannel } from '@floe/db'
import { log } from './log'

export const changeNouns = [
  'instance',
  'operation',
  'incident',
  'host',
] as const satisfies NotificationChannel[]
/** Somebody waits for these. */
const answered = ['setting_check_answered', 'host_check_answered'] as const satisfies NotificationChannel[]
export type ChangeNoun = (typeof changeNouns)[number]
export type Change = { noun: ChangeNoun; id: string }

/**
 * The one listening connection of this process, opened with the first reader. What happens while it is down is not
 * heard, so readers are sent `all` when it is back: then everything may have changed.
 */
export class ChangeWatch {
  #listening: { close(): Promise<void> } | null = null
  readonly #readers = new Set<(change: Change | 'all') => void>()
  readonly #waiting = new Map<string, () => void>()
  readonly #connectionString: string

  constructor(connectionString: string) {
    this.#connectionString = connectionString
  }

  /** Calls `tell` at every change until the answer is called. */
  onChange(tell: (change: Change | 'all') => void): () => void {
    this.#readers.add(tell)
    this.#listen()
    return () => this.#readers.delete(tell)
  }

  /** Calls `tell` when a check is answered, until the answer is called. */
  onCheck(checkId: string, tell: () => void): () => void {
    const key = `${checkId} ${randomUUID()}`
    this.#waiting.set(key, tell)
    this.#listen()
    return () => this.#waiting.delete(key)
  }

  #listen(): void {
    this.#listening ??= listenForNotifications({
      connectionString: this.#connectionString,
      channels: [...changeNouns, ...answered],
      onNotification: (channel, id) => {
        if (answered.some((of) => of === channel)) this.#answered(id)
        else this.#tell({ noun: channel as ChangeNoun, id })
      },
      onConnected: () => {
        this.#tell('all')
        this.#answered(null)
      },
      onLost: (error) => log.warn('changes.connection_lost', { message: error.message }),
    })
  }

  #answered(checkId: string | null): void {
    for (const [key, tell] of this.#waiting) if (checkId === null || key.startsWith(`${checkId} `)) tell()
  }

  async close() {
    await this.#listening?.close()
    this.#listening = null
  }

  #tell(change: Change | 'all') {
    for (const tell of this.#readers) tell(change)
  }
}
