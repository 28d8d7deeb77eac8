import { fault, type Lsn } from '@floe/domain'
import { waitFor } from '@floe/host/wait'
import type pg from 'pg'
import type { Instance } from '../instance'
import type { Work } from '../work'

/** Who gets new WAL says so within milliseconds. */
const ANSWER_BOUND_MS = 2_000
/** A session that was ordered to end has this long. */
const CUT_BOUND_MS = 2_000

type Receiver = { pid: number; role: string; name: string; flushed: Lsn | null; repliedAt: string | null }

/** Those that a stop waits for: a base backup is ended by it. */
const receiversOf = async (client: pg.Client, beyond: Lsn | null): Promise<(Receiver & { has: boolean })[]> =>
  (
    await client.query<Receiver & { has: boolean }>(
      `select pid, usename as role, application_name as name, flush_lsn::text as flushed, reply_time::text as "repliedAt",
              coalesce(flush_lsn >= $1::pg_lsn, false) as has
         from pg_stat_replication where state in ('catchup', 'streaming', 'stopping')`,
      [beyond],
    )
  ).rows

/**
 * Ends connections of receivers of WAL that do not answer, before a primary is stopped: its stop would wait for each until
 * wal_sender_timeout, and clients with it. A record is written for them, while clients still write, and whoever answers
 * within a moment stays. The candidate is known by the role that it authenticated as; where it is silent, and where one of
 * the others cannot be ended, nothing is to be stopped: that throws.
 */
export async function cutSilentReceivers(
  instance: Instance,
  candidate: string,
  context: Pick<Work, 'log' | 'signal'>,
): Promise<void> {
  await instance.connect(async (client) => {
    const silent = await silentReceivers(client, context)
    if (silent.length === 0) return
    if (silent.some(({ role }) => role === candidate))
      throw fault('demote.candidate_silent', 'the standby that is to take over does not answer', {
        detail: `It has confirmed nothing for ${ANSWER_BOUND_MS / 1_000} s.`,
        hint: 'Check its host, or fail over to another standby.',
      })
    for (const { name } of silent) context.log(`"${name}" does not answer: its connection is ended`)
    const left = async () => {
      const there = (await receiversOf(client, null)).filter(({ pid }) => silent.some((s) => s.pid === pid))
      // ordered again: one that waits for its socket to take its last words gives up at the second time
      for (const { pid } of there) await client.query('select pg_terminate_backend($1)', [pid])
      return there
    }
    const gone = await waitFor(async () => (await left()).length === 0, {
      boundMs: CUT_BOUND_MS,
      everyMs: 50,
      signal: context.signal,
    })
    if (gone === null)
      throw fault('demote.receiver_hangs', 'a connection that sends WAL cannot be ended', {
        detail: `Process ${(await left())[0]?.pid ?? '?'} does not obey, and the primary would wait for it when it is stopped.`,
        hint: 'Find out what holds that process up, then try again.',
      })
  }, 5_000)
}

/** Those that do not confirm a record that is written now, and say nothing else either. */
async function silentReceivers(client: pg.Client, { signal }: Pick<Work, 'signal'>): Promise<Receiver[]> {
  const before = await receiversOf(client, null)
  if (before.length === 0) return []
  const { rows } = await client.query<{ lsn: Lsn }>(
    `select pg_logical_emit_message(false, 'floe', '', true)::text as lsn`,
  )
  const lsn = rows[0]?.lsn ?? null
  let silent: Receiver[] = before
  await waitFor(
    async () => {
      const now = await receiversOf(client, lsn)
      // by their own clock: only that it is another time says something
      silent = silent.filter(({ pid, repliedAt }) =>
        now.some((r) => r.pid === pid && !r.has && r.repliedAt === repliedAt),
      )
      return silent.length === 0
    },
    { boundMs: ANSWER_BOUND_MS, everyMs: 10, signal },
  )
  return silent
}
