import type { CheckpointRecord } from './checkpoint'

/** What the server log says of a checkpoint: the line it starts with or the line it completes with. */
export type CheckpointLine =
  | { event: 'starting'; kind: CheckpointRecord['kind']; reasons: string[] }
  | { event: 'complete'; record: Omit<CheckpointRecord, 'reasons' | 'startedAt' | 'completedAt'> }

const starting = /^(checkpoint|restartpoint) starting:((?: [a-z-]+)*)$/
// PostgreSQL 14 to 16 write `(…%); 0 WAL file(s)`, 17 puts `wrote … SLRU buffers` between; lsn came with 16
const complete = new RegExp(
  [
    String.raw`^(checkpoint|restartpoint) complete: wrote (\d+) buffers \(([\d.]+)%\)`,
    String.raw`(?:, wrote (\d+) SLRU buffers)?; `,
    String.raw`(\d+) WAL file\(s\) added, (\d+) removed, (\d+) recycled; `,
    String.raw`write=([\d.]+) s, sync=([\d.]+) s, total=([\d.]+) s; `,
    String.raw`sync files=(\d+), longest=([\d.]+) s, average=([\d.]+) s; `,
    String.raw`distance=(\d+) kB, estimate=(\d+) kB`,
    '(?:; lsn=([0-9A-F]+/[0-9A-F]+), redo lsn=([0-9A-F]+/[0-9A-F]+))?',
  ].join(''),
)

/** Milliseconds of the log's `seconds.thousandths`, free of binary rounding. */
const ms = (seconds: string | undefined) => Math.round(Number(seconds) * 1_000)

/**
 * Reads a log message of the checkpointer (PostgreSQL 14 to 18, lc_messages C); null when it is about something else.
 * Times come out in milliseconds and distances in bytes.
 */
export function parseCheckpointLine(message: string): CheckpointLine | null {
  const s = starting.exec(message)
  if (s)
    return {
      event: 'starting',
      kind: s[1] as CheckpointRecord['kind'],
      reasons: (s[2] as string).split(' ').filter(Boolean),
    }
  const c = complete.exec(message)
  if (!c) return null
  return {
    event: 'complete',
    record: {
      kind: c[1] as CheckpointRecord['kind'],
      buffersWritten: Number(c[2]),
      buffersPercent: Number(c[3]),
      slruBuffersWritten: c[4] === undefined ? null : Number(c[4]),
      walFilesAdded: Number(c[5]),
      walFilesRemoved: Number(c[6]),
      walFilesRecycled: Number(c[7]),
      writeMs: ms(c[8]),
      syncMs: ms(c[9]),
      totalMs: ms(c[10]),
      syncFiles: Number(c[11]),
      longestSyncMs: ms(c[12]),
      averageSyncMs: ms(c[13]),
      distanceBytes: Number(c[14]) * 1024,
      estimateBytes: Number(c[15]) * 1024,
      lsn: c[16] ?? null,
      redoLsn: c[17] ?? null,
    },
  }
}
