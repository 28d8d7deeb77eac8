import { join } from 'node:path'
import { bytesToLsn, compareLsn, fault, type Lsn, lsnToBytes, type TornList } from '@floe/domain'
import type { EngineUser } from '../../host/engine-user'
import { runCommand } from '../../host/run-command'
import { walFileName } from '../wal/wal-file'

/** Looked at first; only where one record is longer, all WAL since the checkpoint is read. */
const LAST_BYTES = 16n * 1024n * 1024n
const READ_MS = 3_600_000

/** Where the last record of a stopped primary's WAL begins. Throws where its directory pg_wal does not say. */
export async function lastRecord(
  primary: { prefix: string; user: EngineUser; dataDirectory: string },
  list: Pick<TornList, 'timeline' | 'segmentBytes' | 'redo' | 'end'>,
  signal: AbortSignal,
): Promise<Lsn> {
  const near = lsnToBytes(list.end) - LAST_BYTES
  const begins = near > lsnToBytes(list.redo) ? [bytesToLsn(near), list.redo] : [list.redo]
  for (const begin of begins) {
    const named = await lastRecordFrom(begin, primary, list, signal)
    if (named !== null && compareLsn(named, list.redo) >= 0 && compareLsn(named, list.end) < 0) return named
  }
  throw fault('restore.no_last_record', 'the primary’s WAL could not be read to its end', {
    detail: `Its directory pg_wal does not hold all of it from ${list.redo} to ${list.end}.`,
    hint: 'Copy what is missing from an archive into it, as its user, then try again.',
  })
}

async function lastRecordFrom(
  begin: Lsn,
  { prefix, user, dataDirectory }: Parameters<typeof lastRecord>[0],
  { timeline, segmentBytes, end }: Parameters<typeof lastRecord>[1],
  signal: AbortSignal,
): Promise<Lsn | null> {
  const size = BigInt(segmentBytes)
  // named, because without names it learns the size of a segment from any file
  const [from, to] = [lsnToBytes(begin), lsnToBytes(end) - 1n].map((at) =>
    walFileName(timeline, at / size, size),
  )
  const r = await runCommand(
    '/bin/sh',
    ['-c', '"$@" | tail -n 1', 'sh', join(prefix, 'bin', 'pg_waldump')].concat(
      ['-p', join(dataDirectory, 'pg_wal'), '-s', begin],
      [from ?? '', to ?? ''],
    ),
    { user, signal, timeoutMs: READ_MS },
  )
  signal.throwIfAborted()
  return (/\blsn: ([0-9A-F]{1,8}\/[0-9A-F]{1,8}),/.exec(r.stdout)?.[1] ?? null) as Lsn | null
}
