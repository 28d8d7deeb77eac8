import { formatBytes, formatDuration } from '@floe/domain'
import { Moment, type SortDirection } from '@floe/ui'
import type { ReactNode } from 'react'
import type { CheckpointView } from './use-checkpoints'

export type CheckpointColumn = {
  key: string
  label: string
  title: string
  number?: boolean
  sortBy: (c: CheckpointView) => number | string
  show: (c: CheckpointView) => ReactNode
}

const count = new Intl.NumberFormat('en')
const time = (ms: number) => formatDuration(ms)

/** The columns of the table of checkpoints: everything that the server's line says. */
export const checkpointColumns: readonly CheckpointColumn[] = [
  {
    key: 'completedAt',
    label: 'Completed',
    title: 'When the checkpoint was complete',
    sortBy: (c) => c.completedAt,
    show: (c) => <Moment at={c.completedAt} />,
  },
  {
    key: 'reason',
    label: 'Reason',
    title: 'Why it started, in words; from the flags of its start line',
    sortBy: (c) => c.reason,
    show: (c) => (
      <span title={c.reasons.join(' ')}>
        {c.kind === 'restartpoint' ? 'restartpoint: ' : ''}
        {c.reason}
      </span>
    ),
  },
  {
    key: 'buffers',
    label: 'Buffers',
    title: 'Buffers written, and their share of shared_buffers',
    number: true,
    sortBy: (c) => c.buffersWritten,
    show: (c) => `${count.format(c.buffersWritten)} (${c.buffersPercent.toFixed(1)} %)`,
  },
  {
    key: 'write',
    label: 'Write',
    title: 'Time spent writing',
    number: true,
    sortBy: (c) => c.writeMs,
    show: (c) => time(c.writeMs),
  },
  {
    key: 'sync',
    label: 'Sync',
    title: 'Time spent in fsync',
    number: true,
    sortBy: (c) => c.syncMs,
    show: (c) => time(c.syncMs),
  },
  {
    key: 'total',
    label: 'Total',
    title: 'Time from start to end',
    number: true,
    sortBy: (c) => c.totalMs,
    show: (c) => time(c.totalMs),
  },
  {
    key: 'syncFiles',
    label: 'Sync files',
    title: 'Files that were synced',
    number: true,
    sortBy: (c) => c.syncFiles,
    show: (c) => count.format(c.syncFiles),
  },
  {
    key: 'longest',
    label: 'Longest',
    title: 'Longest time that one file took to sync',
    number: true,
    sortBy: (c) => c.longestSyncMs,
    show: (c) => time(c.longestSyncMs),
  },
  {
    key: 'average',
    label: 'Average',
    title: 'Average time that a file took to sync',
    number: true,
    sortBy: (c) => c.averageSyncMs,
    show: (c) => time(c.averageSyncMs),
  },
  {
    key: 'distance',
    label: 'Distance',
    title: 'WAL since the redo point of the checkpoint before',
    number: true,
    sortBy: (c) => c.distanceBytes,
    show: (c) => formatBytes(c.distanceBytes),
  },
  {
    key: 'estimate',
    label: 'Estimate',
    title: 'Distance that PostgreSQL expects until the next checkpoint',
    number: true,
    sortBy: (c) => c.estimateBytes,
    show: (c) => formatBytes(c.estimateBytes),
  },
  {
    key: 'walFiles',
    label: 'WAL files',
    title: 'WAL files added / removed / recycled',
    number: true,
    sortBy: (c) => c.walFilesAdded + c.walFilesRemoved + c.walFilesRecycled,
    show: (c) => `${c.walFilesAdded} / ${c.walFilesRemoved} / ${c.walFilesRecycled}`,
  },
  {
    key: 'lsn',
    label: 'LSN',
    title: 'Location of the checkpoint record',
    sortBy: (c) => lsnOrder(c.lsn),
    show: (c) => <span className="font-mono text-xs">{c.lsn ?? '–'}</span>,
  },
  {
    key: 'redoLsn',
    label: 'Redo LSN',
    title: 'Redo location',
    sortBy: (c) => lsnOrder(c.redoLsn),
    show: (c) => <span className="font-mono text-xs">{c.redoLsn ?? '–'}</span>,
  },
]

/** A text that sorts as the positions do; unknown comes first. */
function lsnOrder(lsn: string | null): string {
  return lsn === null
    ? ''
    : lsn
        .split('/')
        .map((part) => part.padStart(8, '0'))
        .join('/')
        .toUpperCase()
}

/** Orders checkpoints by a column; equal ones stay newest first. */
export function sortCheckpoints(
  checkpoints: readonly CheckpointView[],
  key: string,
  direction: SortDirection,
): CheckpointView[] {
  const column = checkpointColumns.find((c) => c.key === key) ?? (checkpointColumns[0] as CheckpointColumn)
  const sign = direction === 'ascending' ? 1 : -1
  return [...checkpoints].sort((a, b) => {
    const [x, y] = [column.sortBy(a), column.sortBy(b)]
    if (x === y) return b.completedAt - a.completedAt
    return x < y ? -sign : sign
  })
}
