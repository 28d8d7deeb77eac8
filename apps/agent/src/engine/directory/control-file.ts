import { join } from 'node:path'
import { type StandbySensitiveSetting, standbySensitiveSettings } from '@floe/domain'
import type { EngineUser } from '../../host/engine-user'
import { runCommand } from '../../host/run-command'

export type ControlFile = {
  /** PostgreSQL's words: `shut down`, `in production`, `in archive recovery`, … */
  clusterState: string
  systemIdentifier: string
  /** Of the newest checkpoint. */
  timeline: number
  /** How far a standby must replay before it is consistent lies on this timeline; 0 on a primary. */
  minRecoveryTimeline: number
  minRecoveryLsn: string
  walSegmentBytes: number
  dataChecksums: boolean
  /** What an engine has to be built for to read it. */
  catalogVersion: number
  blockBytes: number
  /** When its newest checkpoint began, ms since the epoch; null where that cannot be read. */
  checkpointAt: number | null
  /** Where the newest checkpoint record lies, and from where it would be replayed. */
  checkpointLsn: string
  redoLsn: string
  /**
   * Settings that standbys may not have smaller, by name: on a primary its own, on a standby those of its primary, as of
   * the last change of them that it has replayed.
   */
  asked: Record<StandbySensitiveSetting, number>
}

/** pg_controldata's labels; two of them are older than the names of the settings. */
const askedLabels: Record<StandbySensitiveSetting, string> = {
  max_connections: 'max_connections setting',
  max_worker_processes: 'max_worker_processes setting',
  max_wal_senders: 'max_wal_senders setting',
  max_prepared_transactions: 'max_prepared_xacts setting',
  max_locks_per_transaction: 'max_locks_per_xact setting',
}

/** Whether it was a standby when it wrote that. One that was stopped in order says `shut down in recovery`. */
export const wasStandby = ({ clusterState }: Pick<ControlFile, 'clusterState'>): boolean =>
  clusterState === 'in archive recovery' || clusterState === 'shut down in recovery'

/** Reads what pg_controldata prints in the C locale. */
export function parseControlData(text: string): ControlFile | null {
  const field = (label: string) =>
    text
      .split('\n')
      .find((line) => line.startsWith(`${label}:`))
      ?.slice(label.length + 1)
      .trim()
  const clusterState = field('Database cluster state')
  const systemIdentifier = field('Database system identifier')
  if (!clusterState || !systemIdentifier) return null
  return {
    clusterState,
    systemIdentifier,
    timeline: Number(field("Latest checkpoint's TimeLineID")),
    minRecoveryTimeline: Number(field("Min recovery ending loc's timeline") ?? 0),
    minRecoveryLsn: field('Minimum recovery ending location') ?? '0/0',
    walSegmentBytes: Number(field('Bytes per WAL segment') ?? 0),
    dataChecksums: Number(field('Data page checksum version')) > 0,
    catalogVersion: Number(field('Catalog version number') ?? 0),
    blockBytes: Number(field('Database block size') ?? 0),
    // in UTC, as everything that the agent runs
    checkpointAt: Date.parse(`${field('Time of latest checkpoint')} UTC`) || null,
    checkpointLsn: field('Latest checkpoint location') ?? '0/0',
    redoLsn: field("Latest checkpoint's REDO location") ?? '0/0',
    asked: Object.fromEntries(
      standbySensitiveSettings.map((name) => [name, Number(field(askedLabels[name]) ?? 0)]),
    ) as ControlFile['asked'],
  }
}

/** The control file of a data directory, or null where there is none that can be read. */
export async function readControlFile(
  prefix: string,
  dataDirectory: string,
  user: EngineUser,
): Promise<ControlFile | null> {
  const r = await runCommand(join(prefix, 'bin', 'pg_controldata'), ['-D', dataDirectory], {
    user,
    timeoutMs: 5_000,
  })
  return r.status === 0 ? parseControlData(r.stdout) : null
}
