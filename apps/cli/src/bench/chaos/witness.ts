import type { PsqlSession } from '../psql-session'
import type { Accepted } from './judge'
import { pause, within } from './ledger'

export const WITNESSED = 'chaos_witness'
const EVERY_MS = 100
const LOOK_EVERY_MS = 500
/** A member that says nothing for so long is asked over a new connection. */
const ANSWER_MS = 5_000

/**
 * Asks every member, over a connection of its own and about ten times a second, whether it is a primary, and if so lets it
 * commit a row. No fault cuts it off, so that it also sees a primary that nobody else reaches.
 */
export class Witness {
  readonly accepted: Accepted[] = []
  /** When any member said that it is a primary. */
  readonly primarySeen: number[] = []
  readonly #sessions = new Set<PsqlSession>()
  readonly #done: Promise<unknown>
  #running = true

  readonly #commits: boolean

  /** `commits: false` only asks. */
  constructor(
    members: readonly string[],
    connect: (member: string) => PsqlSession,
    { commits = true }: { commits?: boolean } = {},
  ) {
    this.#commits = commits
    this.#done = Promise.all(members.map((member) => this.#watch(member, connect)))
  }

  async stop(): Promise<void> {
    this.#running = false
    for (const s of this.#sessions) s.end()
    await this.#done
  }

  async #watch(member: string, connect: (member: string) => PsqlSession): Promise<void> {
    let session: PsqlSession | null = null
    while (this.#running) {
      if (session === null || session.ended) {
        session = connect(member)
        this.#sessions.add(session)
      }
      const began = performance.now()
      try {
        const role = await within(session.run('select pg_is_in_recovery()'), ANSWER_MS, member)
        if (role === 'f') {
          this.primarySeen.push(performance.now())
          if (this.#commits) await this.#commit(session, member)
        }
      } catch {
        session.end()
        this.#sessions.delete(session)
        session = null
      }
      const everyMs = this.#commits ? EVERY_MS : LOOK_EVERY_MS
      if (this.#running) await pause(Math.max(5, everyMs - (performance.now() - began)))
    }
  }

  async #commit(session: PsqlSession, member: string): Promise<void> {
    const sentAt = performance.now()
    // of the WAL that it writes: the control file's timeline is that of the last checkpoint
    const timeline = await within(
      session.run(
        `insert into ${WITNESSED} values (default) returning substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)`,
      ),
      ANSWER_MS,
      member,
    )
    if (/^[0-9A-F]{8}$/.test(timeline))
      this.accepted.push({ member, timeline, sentAt, acknowledgedAt: performance.now() })
  }
}
