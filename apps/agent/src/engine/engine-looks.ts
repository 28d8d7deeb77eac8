import type { FlashbackLog, Protection, RemoteAccess, SharedServerSeen } from '@floe/domain'
import type { Sampler } from '../sampler/sampler'
import { readRemoteAccess } from './access/remote-access'
import { newsOfFlashback, readFlashbackLog } from './flashback/flashback-log'
import { newsOf, readProtection, recoveryWithStart } from './page-repair/protection'
import { PeriodicLook } from './periodic-look'
import { lookAtSharedServer } from './shared-server/shared-server'

/** What the engine says of itself, in the words of the report. */
type Said = {
  protection: Protection
  flashback: FlashbackLog
  sharedServer: SharedServerSeen
  remoteAccess: RemoteAccess
}
type OrNothing<T> = { [What in keyof T]: T[What] | null }

/** A change shows within this time. Each look is two short questions, but that at pg_hba.conf, which the engine parses. */
const everyMs: Record<keyof Said, number> = {
  protection: 1_000,
  flashback: 5_000,
  sharedServer: 5_000,
  remoteAccess: 10_000,
}

const asText = (answer: unknown) => JSON.stringify(answer)

/** Asks an engine, over the sampler's connection, for what a report tells of it; each thing at a pace of its own. */
export class EngineLooks {
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
    this.#looks = {
      protection: new PeriodicLook({
        everyMs: everyMs.protection,
        ask: async () => {
          const answer = await readProtection(ask)
          return answer && { ...answer, recovery: recoveryWithStart(answer.recovery, sampler.crashStart) }
        },
        newsOf,
        onChange,
      }),
      flashback: new PeriodicLook({
        everyMs: everyMs.flashback,
        ask: () => readFlashbackLog(ask),
        newsOf: newsOfFlashback,
        onChange,
      }),
      sharedServer: new PeriodicLook({
        everyMs: everyMs.sharedServer,
        ask: () => lookAtSharedServer(ask, postmasterPid()),
        newsOf: asText,
        onChange,
      }),
      remoteAccess: new PeriodicLook({
        everyMs: everyMs.remoteAccess,
        ask: () => readRemoteAccess(ask),
        newsOf: asText,
        onChange,
      }),
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
