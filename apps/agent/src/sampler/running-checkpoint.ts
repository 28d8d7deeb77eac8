import type { RunningCheckpoint } from '@floe/telemetry'
import type { RunningCheckpointStart } from './checkpoint-follower'

type Row = Record<string, unknown>
const numberOf = (row: Row, name: string) => (typeof row[name] === 'number' ? Math.round(row[name]) : null)

/**
 * The running checkpoint at a tick. Where the engine itself reports it (module monitor) its word counts, as it is of the
 * moment; elsewhere the server log's start line and the growth of the checkpointer's counter since then.
 */
export class CheckpointProgress {
  #running: RunningCheckpoint | null = null
  #startedAt: number | null = null
  #buffersBefore: number | null = null

  get running(): RunningCheckpoint | null {
    return this.#running
  }

  /** `buffers`: pg_stat_checkpointer.buffers_written at this tick; `before`: at the one before. */
  update(
    row: Row,
    logged: RunningCheckpointStart | null,
    buffers: number | null,
    before: number | null,
  ): void {
    this.#running =
      typeof row.checkpoint_runs === 'boolean' ? fromView(row) : this.#fromLog(logged, buffers, before)
    if (!this.#running) return
    const timed = this.#running.reasons.includes('time')
    const timeout = row.checkpoint_timeout
    const completion = row.checkpoint_completion_target
    if (timed && typeof timeout === 'number' && typeof completion === 'number')
      this.#running.targetMs = timeout * 1_000 * completion
  }

  /** The engine has ended. */
  clear(): void {
    this.#running = null
    this.#startedAt = null
  }

  #fromLog(
    logged: RunningCheckpointStart | null,
    buffers: number | null,
    before: number | null,
  ): RunningCheckpoint | null {
    if (!logged) return null
    if (this.#startedAt !== logged.startedAt) {
      this.#startedAt = logged.startedAt
      this.#buffersBefore = before
    }
    const from = this.#buffersBefore
    const known = buffers !== null && from !== null && buffers >= from
    return { ...logged, buffersWritten: known ? buffers - from : null, targetMs: null }
  }
}

function fromView(row: Row): RunningCheckpoint | null {
  const startedAt = numberOf(row, 'checkpoint_started_at')
  if (row.checkpoint_runs !== true || startedAt === null) return null
  return {
    kind: row.checkpoint_kind === 'restartpoint' ? 'restartpoint' : 'checkpoint',
    reasons: String(row.checkpoint_reason ?? '')
      .split(' ')
      .filter(Boolean),
    startedAt,
    buffersWritten: numberOf(row, 'checkpoint_buffers_written'),
    targetMs: null,
    phase: (row.checkpoint_phase ?? null) as RunningCheckpoint['phase'],
    buffersTotal: numberOf(row, 'checkpoint_buffers_total'),
    buffersProcessed: numberOf(row, 'checkpoint_buffers_processed'),
    filesTotal: numberOf(row, 'checkpoint_files_total'),
    filesProcessed: numberOf(row, 'checkpoint_files_processed'),
  }
}
