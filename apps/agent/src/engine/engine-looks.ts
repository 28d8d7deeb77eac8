import type { FlashbackLog, Protection, RemoteAccess, SharedServerSeen } from '@floe/domain'
import type { Sampler } from '../sampler/sampler'
import { readRemoteAccess } from './access/remote-access'
import { newsOfFlashback, readFlashbackLog } from './flashback/flashback-log'
import { newsOf, readProtection, recoveryWithStart } from './page-repair/protection'
import { PeriodicLook } from './periodic-look'
import { Heartbeats } from './shared-server/heartbeats'
import { lookAtSharedServer } from './shared-server/shared-server'

/** What the engine says of itself, in the words of the report. */
type Said = {
  protection: Protection
  flashback: FlashbackLog
  sharedServer: SharedServerSeen
  remoteAccess: RemoteAccess
}
type OrNothing<T> = { [What in keyof T]: T[What] | null }

const asText = (answer: unknown) => JSON.stringify(answer)

/** Asks an engine, over the sampler's connection, for what a report says of it; each thing at a pace of its own. */
export class EngineLooks {
  /** Of its dispatchers, and their relays. */
  readonly heartbeats = new Heartbeats()
  readonly #sampler: Sampler
  readonly #looks: { [What in keyof Said]: PeriodicLook<Said[What]> }

  constructor({
    sampler,
    postmasterPid,
    onChange,
  }: {
    sampler: Sampler
    postmasterPid: () => number | null
    onChange: () => void
  }) {
    this.#sampler = sampler
    const ask = (sql: string) => sampler.ask(sql)
    // a change shows within the time given; each look is two short questions, but that at pg_hba.conf, which the engine parses
    const look = <T>(everyMs: number, ask: () => Promise<T | null>, newsOf: (answer: T | null) => string) =>
      new PeriodicLook({ everyMs, ask, newsOf, onChange })
    this.#looks = {
      protection: look(
        1_000,
        async () => {
          const answer = await readProtection(ask)
          return answer && { ...answer, recovery: recoveryWithStart(answer.recovery, sampler.crashStart) }
        },
        newsOf,
      ),
      flashback: look(5_000, () => readFlashbackLog(ask), newsOfFlashback),
      sharedServer: look(5_000, () => lookAtSharedServer(ask, postmasterPid(), this.heartbeats), asText),
      remoteAccess: look(10_000, () => readRemoteAccess(ask), asText),
    }
  }

  /** Asks for whatever is due; what an engine that answers nobody had said is forgotten. */
  async look(): Promise<void> {
    await Promise.all(Object.values(this.#looks).map((look) => look.look(this.#sampler.identity !== null)))
  }

  /** Asks for one thing now. */
  lookAt(what: keyof Said): Promise<void> {
    return this.#looks[what].look(this.#sampler.identity !== null, 0)
  }

  /** What it said last. */
  get said(): OrNothing<Said> {
    const { protection, flashback, sharedServer, remoteAccess } = this.#looks
    return {
      protection: protection.answer,
      flashback: flashback.answer,
      sharedServer: sharedServer.answer,
      remoteAccess: remoteAccess.answer,
    }
  }
}

/** Of an engine that does not run. */
export const nothingSaid: OrNothing<Said> = {
  protection: null,
  flashback: null,
  sharedServer: null,
  remoteAccess: null,
}
