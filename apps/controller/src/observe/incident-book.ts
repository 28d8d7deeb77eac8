import {
  closeIncidents,
  type Database,
  inTransaction,
  type LeaseHold,
  listOpenIncidentsOfHost,
  listOpenIncidentsOfKinds,
  openIncident,
  requireLease,
  type Transaction,
} from '@floe/db'
import { type IncidentReport, incidentKindOf, incidentKindsOpenedBy } from '@floe/domain'
import type { Log } from '@floe/host/log'

/** What a lane opens and closes; those of operation steps belong to the steps. Of a kind that is gone nobody else closes one. */
const isOwn = (key: string) => (incidentKindOf(key)?.openedBy ?? 'host lane') === 'host lane'

/** Why what is not named any more is over. */
function whyOver(key: string): string {
  const kind = incidentKindOf(key)
  return kind && 'resolved' in kind ? kind.resolved : 'The host no longer reports it.'
}

/** `words`: all that was last written of it, empty where another lane did. */
type Open = { words: string; detail: string | null }

/** Keeps the open incidents of one host, or of all clusters, as they ought to be, writing only what changed. */
export class IncidentBook {
  readonly #db: Pick<Database, 'pool'>
  readonly #of: { hostId: string } | 'clusters'
  readonly #log: Log
  readonly #now: () => number
  readonly #hold: () => LeaseHold
  #open: Map<string, Open> | undefined
  /** Since when those are wanted that are opened only when they last, by key. */
  readonly #waiting = new Map<string, number>()

  /** `hold`: the lane's lease, under which everything is written; `now`: milliseconds of a clock that never goes back. */
  constructor(
    db: Pick<Database, 'pool'>,
    of: { hostId: string } | 'clusters',
    log: Log,
    { hold, now = () => performance.now() }: { hold: () => LeaseHold; now?: () => number },
  ) {
    this.#db = db
    this.#of = of
    this.#log = log
    this.#now = now
    this.#hold = hold
  }

  /** What is open, by key with its detail. */
  async open(): Promise<ReadonlyMap<string, string | null>> {
    return new Map([...(await this.#read())].map(([key, { detail }]) => [key, detail]))
  }

  async #read(): Promise<Map<string, Open>> {
    this.#open ??= new Map((await this.#stored()).map(({ key, detail }) => [key, { words: '', detail }]))
    return this.#open
  }

  async #stored(): Promise<{ key: string; detail: string | null }[]> {
    if (this.#of === 'clusters')
      return listOpenIncidentsOfKinds(this.#db.pool, incidentKindsOpenedBy('cluster watch'))
    return (await listOpenIncidentsOfHost(this.#db.pool, this.#of.hostId)).filter(({ key }) => isOwn(key))
  }

  /** Reads again what is open: others may have closed some, e.g. with an instance that was deleted. */
  async refresh(): Promise<void> {
    const before = this.#open
    this.#open = undefined
    const open = await this.#read()
    for (const [key, { detail }] of open) {
      const known = before?.get(key)
      if (known?.detail === detail) open.set(key, known)
    }
  }

  /** Restarts the grace period of what is not open: nothing was observed for a while. */
  startOver(): void {
    this.#waiting.clear()
  }

  /** Whether it has been wanted for as long as its kind has to last; from the first moment on that it was. */
  #lasts(key: string): boolean {
    const since = this.#waiting.get(key) ?? this.#now()
    this.#waiting.set(key, since)
    return this.#now() - since >= (incidentKindOf(key)?.graceMs ?? 0)
  }

  #underLease<T>(write: (tx: Transaction) => Promise<T>): Promise<T> {
    return inTransaction(this.#db.pool, async (tx) => {
      await requireLease(tx, this.#hold())
      return write(tx)
    })
  }

  /**
   * Opens what is wanted, and closes what is open and `over`. Of what is `held` the time counts, and it is not opened.
   * Writes nothing, and throws, once the lease is lost.
   */
  async settle(
    wanted: readonly IncidentReport[],
    over: (key: string) => boolean,
    held: (key: string) => boolean = () => false,
  ): Promise<void> {
    const open = await this.#read()
    for (const incident of wanted) {
      const words = JSON.stringify(incident)
      const known = open.get(incident.key)
      if (known?.words === words) continue
      if (!known && (!this.#lasts(incident.key) || held(incident.key))) continue
      if (await this.#underLease((tx) => openIncident(tx, incident)))
        this.#log.warn('incident.opened', { key: incident.key, title: incident.title })
      open.set(incident.key, { words, detail: incident.detail ?? null })
    }
    const keys = new Set<string>(wanted.map((incident) => incident.key))
    for (const key of this.#waiting.keys()) if (!keys.has(key) || open.has(key)) this.#waiting.delete(key)
    const ended = [...open.keys()].filter((key) => !keys.has(key) && over(key))
    for (const because of new Set(ended.map(whyOver)))
      for (const key of await this.#underLease((tx) =>
        closeIncidents(
          tx,
          ended.filter((key) => whyOver(key) === because),
          because,
        ),
      ))
        this.#log.info('incident.closed', { key })
    for (const key of ended) open.delete(key)
  }
}
