import type { SettingView } from '@/server/api'
import { leadValue } from './setting-diff'
import { formatSize, parseSize, unitBytes } from './size-value'

/** Every process of these kinds has its share of the pool, and so has what PostgreSQL itself adds. */
const processSettings = [
  'max_connections',
  'autovacuum_worker_slots',
  'max_worker_processes',
  'max_wal_senders',
] as const
const otherProcesses = 2 + 38
/** Buffers that each process counts as pinned already. */
const pinnedAnyway = 8

/** The settings that decide how much is written at once, beside the size itself. */
export const longestWriteSettings = ['shared_buffers', ...processSettings] as const

/**
 * The most bytes that go out with one write, whatever polar_bulk_write_size says: each block of it needs a pin, and a process
 * may pin its share of the pool (GetAdditionalPinLimit() in the engine's bufmgr.c). Null where a setting is not known.
 */
function longestWrite(settings: readonly SettingView[]): number | null {
  const numberOf = (name: string): number => {
    const value = settings.find((s) => s.name === name)
    const text = value ? leadValue(value)?.value : null
    return text == null || text === '' ? Number.NaN : Number(text)
  }
  const blockBytes = unitBytes(settings.find((s) => s.name === 'shared_buffers')?.unit ?? null)
  const processes = processSettings.reduce((sum, name) => sum + numberOf(name), otherProcesses)
  const pins = Math.floor(numberOf('shared_buffers') / processes)
  if (blockBytes === null || Number.isNaN(pins)) return null
  return (1 + Math.max(0, pins - pinnedAnyway)) * blockBytes
}

/** What to say of it below the size that is wanted; null where the size is what limits a write. */
export function longestWriteWords(settings: readonly SettingView[], wanted: SettingView, text: string) {
  const most = longestWrite(settings)
  const bytes = parseSize(text, wanted.unit)
  const block = unitBytes(wanted.unit)
  if (most === null || bytes === null || block === null || bytes <= Math.max(most, block)) return null
  const shown = (name: string) => settings.find((s) => s.name === name)
  const [pool, connections] = [shown('shared_buffers'), shown('max_connections')].map((s) =>
    s ? leadValue(s)?.shown : null,
  )
  const why = `shared_buffers is ${pool} and max_connections ${connections}, and one process may use its share of the pool only.`
  return most <= block
    ? `Single blocks are written all the same: ${why}`
    : `At most ${formatSize(most)} are written at once: ${why}`
}
