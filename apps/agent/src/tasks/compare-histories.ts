import { createHash } from 'node:crypto'
import { closeSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import type { Upstream } from '@floe/agent-contract'
import { bytesToLsn, fault, type Lsn, lsnToBytes } from '@floe/domain'
import pg from 'pg'
import { type ControlFile, readControlFile, wasStandby } from '../engine/control-file'
import type { Instance } from '../engine/instance'
import { runCommand } from '../host/run-command'
import type { TaskContext } from './task'

/** How much WAL is compared at a time. */
const CHUNK_BYTES = 1024 * 1024
/** Fewer may be the same by chance: a page header has 40, and a commit, with its time, some hundred bytes. */
const ENOUGH_BYTES = 1024

/**
 * Whether pg_rewind may be asked, and whether it need be. It takes two directories on timelines of one number for one
 * history, and it ends an interrupted recovery by running the engine alone, outside recovery: a standby would then write a
 * checkpoint of its own where its primary wrote something else, and would pass for one that has nothing to take back.
 * So a standby on its primary's timeline is judged by its WAL: it follows the same history if its last segment is the same.
 */
export async function compareHistories(
  control: ControlFile,
  upstream: Upstream,
  instance: Instance,
  context: TaskContext,
): Promise<{ refused: string } | { nothingToTakeBack: boolean }> {
  const seen = await askUpstream(upstream, instance, (client) => lookAtUpstream(client))
  if (seen.systemIdentifier !== control.systemIdentifier)
    return { refused: 'its system identifier is not the primary’s' }
  if (seen.timeline === null) return { refused: 'the primary is still a standby' }
  const timeline = Math.max(control.timeline, control.minRecoveryTimeline)
  if (timeline === seen.timeline) {
    if (!wasStandby(control))
      return { refused: `it was a primary on timeline ${timeline}, as the primary is now: two histories` }
    const end = await endOfWal(instance, context, { timeline, boundMs: 600_000 })
    if (end === null) return { refused: 'where its WAL ends could not be read' }
    const differs = await askUpstream(upstream, instance, (client) =>
      compareWal(client, instance, { timeline, end, segmentBytes: BigInt(control.walSegmentBytes) }),
    )
    return differs ? { refused: differs } : { nothingToTakeBack: true }
  }
  if (control.clusterState === 'in archive recovery')
    return {
      refused: `it crashed as a standby on timeline ${timeline}, and the primary is on timeline ${seen.timeline}`,
    }
  if (!seen.fullPageWrites)
    return {
      refused:
        'the primary runs with full_page_writes off; pg_rewind needs the page images to know which pages differ',
    }
  return { nothingToTakeBack: false }
}

/**
 * The end of the WAL on disk, or null: pg_waldump reads from the last checkpoint, or from where a standby had replayed to
 * at least, and names where it had to stop.
 */
export async function endOfWal(
  instance: Instance,
  context: TaskContext,
  {
    dataDirectory = instance.layout.dataDirectory,
    timeline,
    boundMs = 20_000,
  }: { dataDirectory?: string; timeline?: number; boundMs?: number } = {},
): Promise<Lsn | null> {
  const control = await readControlFile(instance.enginePrefix, dataDirectory, context.user)
  if (!control) return null
  const start = (
    timeline !== undefined && timeline > control.timeline ? control.minRecoveryLsn : control.redoLsn
  ) as Lsn
  const r = await runCommand(
    join(instance.enginePrefix, 'bin', 'pg_waldump'),
    ['--quiet', '-p', join(dataDirectory, 'pg_wal'), '-t', String(timeline ?? control.timeline), '-s', start],
    { user: context.user, timeoutMs: boundMs, signal: context.signal },
  )
  return endNamedByWaldump(r.stderr, start, BigInt(control.walSegmentBytes))
}

/** Reads where pg_waldump had to stop: at a record that is none, or where the file of the next segment would begin. */
export function endNamedByWaldump(stderr: string, start: Lsn, segmentBytes: bigint): Lsn | null {
  const missing = /could not (?:find|open) file "(?:[^"]*\/)?[0-9A-F]{8}([0-9A-F]{8})([0-9A-F]{8})"/.exec(
    stderr,
  )
  if (missing) {
    const begin = (BigInt(`0x${missing[1]}`) << 32n) + BigInt(`0x${missing[2]}`) * segmentBytes
    // without even the segment to start in, nothing is known
    return begin >= lsnToBytes(start) ? bytesToLsn(begin) : null
  }
  const named = [...stderr.matchAll(/\b([0-9A-F]{1,8}\/[0-9A-F]{1,8})\b/g)].at(-1)?.[1]
  return (named ?? null) as Lsn | null
}

/**
 * Why the last segment before `end` is not the primary's, or null. All of it: what follows a switch of segments is zeroes
 * to its end, on every server.
 */
async function compareWal(
  client: pg.Client,
  instance: Instance,
  { timeline, end, segmentBytes }: { timeline: number; end: Lsn; segmentBytes: bigint },
): Promise<string | null> {
  const { rows } = await client.query<{ ahead: boolean; flushed: string }>(
    `select $1::pg_lsn > pg_current_wal_flush_lsn() as ahead, pg_current_wal_flush_lsn()::text as flushed`,
    [end],
  )
  if (rows[0]?.ahead !== false)
    return `it has WAL up to ${end}, the primary on the same timeline only up to ${rows[0]?.flushed}`
  let until = lsnToBytes(end)
  // of a segment that has only begun there is too little to tell; the one before is full
  if (until % segmentBytes < ENOUGH_BYTES) until -= until % segmentBytes
  const segment = (until - 1n) / segmentBytes
  const file = walFileName(timeline, segment, segmentBytes)
  const length = Number(until - segment * segmentBytes)
  for (let from = 0; from < length; from += CHUNK_BYTES) {
    const part = [from, Math.min(CHUNK_BYTES, length - from)] as const
    const own = readPart(join(instance.layout.dataDirectory, 'pg_wal', file), ...part)
    if (own === null) return `its WAL segment ${file} cannot be read`
    const there = await client.query<{ sum: string | null }>(
      `select encode(sha256(pg_read_binary_file('pg_wal/' || $1::text, $2, $3, true)), 'hex') as sum`,
      [file, ...part],
    )
    const sum = there.rows[0]?.sum
    if (!sum) return `the primary has WAL segment ${file} no more, to compare with`
    if (createHash('sha256').update(own).digest('hex') !== sum)
      return `its WAL before ${end} on timeline ${timeline} is not the primary’s: two histories`
  }
  return null
}

/** `000000020000000A000000FE`: timeline, and the segment in two parts. */
export function walFileName(timeline: number, segment: bigint, segmentBytes: bigint): string {
  const perPart = 0x1_0000_0000n / segmentBytes
  return [BigInt(timeline), segment / perPart, segment % perPart]
    .map((part) => part.toString(16).toUpperCase().padStart(8, '0'))
    .join('')
}

function readPart(path: string, from: number, length: number): Buffer | null {
  let fd: number
  try {
    fd = openSync(path, 'r')
  } catch {
    return null
  }
  try {
    const part = Buffer.alloc(length)
    return readSync(fd, part, 0, length, from) === length ? part : null
  } finally {
    closeSync(fd)
  }
}

async function lookAtUpstream(client: pg.Client) {
  const { rows } = await client.query<{ fpw: string; system: string; timeline: string | null }>(
    `select current_setting('full_page_writes') as fpw,
            (select system_identifier::text from pg_control_system()) as system,
            case when not pg_is_in_recovery() then left(pg_walfile_name(pg_current_wal_lsn()), 8) end as timeline`,
  )
  const { fpw, system, timeline } = rows[0] ?? {}
  return {
    fullPageWrites: fpw === 'on',
    systemIdentifier: system,
    /** Of what it writes now, which its control file may not name yet; null in recovery. */
    timeline: timeline ? Number.parseInt(timeline, 16) : null,
  }
}

/** Asks the upstream as the role that the member replicates with. */
async function askUpstream<T>(
  upstream: Upstream,
  instance: Instance,
  ask: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({
    host: upstream.host,
    port: upstream.port,
    user: upstream.role,
    password: instance.registered.replicationPassword,
    database: 'postgres',
    connectionTimeoutMillis: 5_000,
    query_timeout: 10_000,
  })
  client.on('error', () => {})
  try {
    await client.connect()
    return await ask(client)
  } catch (error) {
    throw fault('standby.no_upstream', `could not ask ${upstream.host}:${upstream.port}`, {
      detail: error instanceof Error ? error.message : String(error),
      hint: 'Check that the primary runs and that this host reaches it.',
    })
  } finally {
    await client.end().catch(() => {})
  }
}
