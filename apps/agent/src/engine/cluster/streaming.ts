import type { Upstream } from '@floe/agent-contract'
import { fault } from '@floe/domain'
import { waitFor } from '@floe/host/wait'
import type pg from 'pg'
import type { Instance } from '../instance'
import { sqlState } from '../process/connection'
import type { Work } from '../work'

/** A running standby that is given another upstream, or none, obeys within this. */
export const OBEY_BOUND_MS = 15_000
/** A synchronous commit may wait this long for a standby that cannot come as its new role. */
export const NEW_ROLE_BOUND_MS = 10_000

/** How long the engine may say that it cannot follow before that is believed. */
const REFUSED_AFTER_MS = 10_000

type Receiver = { status: string; host: string | null; port: number | null; role: string | null } | undefined

/** A standby's WAL receiver; undefined while it has none. */
export const receiverOf = async (client: pg.Client): Promise<Receiver> =>
  (
    await client.query<NonNullable<Receiver>>(
      `select status, sender_host as host, sender_port as port,
              substring(conninfo from '(?:^| )user=([^ ]+)') as role
         from pg_stat_wal_receiver`,
    )
  ).rows[0]

const streamsFrom = (r: Receiver, upstream: Upstream) =>
  r?.status === 'streaming' &&
  r.host === upstream.host &&
  r.port === upstream.port &&
  r.role === upstream.role

/** Waits until a standby streams from its upstream, as the role that it is to come as there. */
export async function waitUntilStreaming(
  instance: Instance,
  upstream: Upstream,
  context: Pick<Work, 'log' | 'signal'>,
  boundMs: number,
): Promise<void> {
  const begun = performance.now()
  let said = false
  const streams = await waitFor(
    async () => {
      const refused = followRefusal(instance)
      if (refused && performance.now() - begun > REFUSED_AFTER_MS)
        throw fault(
          'standby.cannot_follow',
          `instance "${instance.registered.name}" cannot follow the primary`,
          {
            detail: refused,
            hint: 'Rejoin it: by pg_rewind where that is allowed, else by a new copy.',
          },
        )
      const seen = await instance.connect(receiverOf).catch((error) => {
        // an engine that is up and refuses the agent itself will not come to like it
        if (sqlState(error.cause)?.startsWith('28')) throw error
        return undefined
      })
      if (streamsFrom(seen, upstream)) return true
      if (!said && performance.now() - begun > 2_000) {
        said = true
        context.log('waiting until it streams')
      }
      return false
    },
    { boundMs, everyMs: 30, signal: context.signal },
  )
  if (streams === null)
    throw fault('standby.not_streaming', `instance "${instance.registered.name}" does not stream`, {
      detail: instance.recentComplaints().at(-1) ?? 'Its log gives no reason.',
      hint: `Its log is in directory "${instance.layout.logDirectory}".`,
    })
  context.log(`streams from ${upstream.host}:${upstream.port}`)
}

/** Words that mean that no waiting helps: its history and the upstream's parted, or its WAL is gone. */
const parted =
  /requested starting point .* is not in this server's history|new timeline \d+ forked off|has already been removed|database system identifier differs|requested WAL segment|highest timeline \d+ of the primary is behind/i

function followRefusal(instance: Instance): string | null {
  return (
    instance
      .recentComplaints()
      .filter((words) => parted.test(words))
      .at(-1) ?? null
  )
}
