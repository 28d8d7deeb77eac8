import { closeIncidents, type Database, type IncidentReport, openIncident, openIncidentKeys } from '@floe/db'
import type { Log } from '../log'

/** Keys a lane opens and closes; those of operation steps belong to the steps. */
const ownKinds = [
  'host-offline',
  'host-clock',
  'disk-low',
  'agent-problem',
  'instance-crashed',
  'instance-missing',
  'instance-unregistered',
  'second-primary',
  'commits-wait',
  'slot-unused',
  'setting-drift',
  'page-unprotected',
  'page-guard-off',
]
const kindOf = (key: string) => key.slice(0, key.indexOf(':'))
const isOwn = (key: string) => ownKinds.includes(kindOf(key))

/** Why what a host's report does not name any more is over. */
const whyOver = (key: string) =>
  kindOf(key) === 'host-offline' ? 'The host answers again.' : 'The host’s report does not show it any more.'

/** Keeps the open incidents of one host as they ought to be, writing only what changed. */
export class IncidentBook {
  readonly #db: Database
  readonly #hostId: string
  readonly #log: Log
  #open: Map<string, string> | undefined

  constructor(db: Database, hostId: string, log: Log) {
    this.#db = db
    this.#hostId = hostId
    this.#log = log
  }

  async openKeys(): Promise<ReadonlySet<string>> {
    return new Set((await this.#read()).keys())
  }

  async #read(): Promise<Map<string, string>> {
    this.#open ??= new Map(
      (await openIncidentKeys(this.#db.pool, this.#hostId)).filter(isOwn).map((key) => [key, '']),
    )
    return this.#open
  }

  /** Opens what is wanted, and closes what is open and `over`. */
  async settle(wanted: readonly IncidentReport[], over: (key: string) => boolean): Promise<void> {
    const open = await this.#read()
    for (const incident of wanted) {
      const words = JSON.stringify(incident)
      if (open.get(incident.key) === words) continue
      if (await openIncident(this.#db.pool, incident))
        this.#log.warn('incident.opened', { key: incident.key, title: incident.title })
      open.set(incident.key, words)
    }
    const keys = new Set(wanted.map((incident) => incident.key))
    const ended = [...open.keys()].filter((key) => !keys.has(key) && over(key))
    for (const because of new Set(ended.map(whyOver)))
      for (const key of await closeIncidents(
        this.#db.pool,
        ended.filter((key) => whyOver(key) === because),
        because,
      ))
        this.#log.info('incident.closed', { key })
    for (const key of ended) open.delete(key)
  }
}
