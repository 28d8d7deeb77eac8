import { z } from 'zod'

/** Of the flashback log, in the engine's words: off, waiting for the first point of a window, or on. */
export const FlashbackLogState = z.enum(['off', 'waiting', 'on'])
export type FlashbackLogState = z.infer<typeof FlashbackLogState>

/** What bounds the window, as the instance runs with it. */
export const FlashbackLimits = z.object({
  /** `polar_enable_fast_recovery_area`: WAL and commit status are kept for the window. */
  recoveryArea: z.boolean(),
  /** `polar_fast_recovery_area_rotation` */
  rotationMs: z.number(),
  /** `polar_flashback_log_keep_segments`, in bytes. */
  keepBytes: z.number(),
  /** `polar_flashback_log_max_size`; null: no limit. */
  maxBytes: z.number().nullable(),
  /** `polar_flashback_recycle_max_size`: former files of tables, beside the log; null: no limit, left out: not known. */
  recycleBytes: z.number().nullish(),
})
export type FlashbackLimits = z.infer<typeof FlashbackLimits>

/** The flashback log of an instance and its window (`polar_stat_flashback_log`). Times in ms since the epoch. */
export const FlashbackLog = z.object({
  state: FlashbackLogState,
  /** Null while it is off. */
  mode: z.enum(['async', 'sync']).nullable(),
  /** The window reaches from here to now; null while there is none. */
  oldestAt: z.number().nullable(),
  /** On a standby it reaches no further than this, just before the last commit that was replayed; left out elsewhere. */
  newestAt: z.number().nullish(),
  newestPointAt: z.number().nullable(),
  points: z.number().int(),
  windowBeganAt: z.number().nullable(),
  /** How often earlier windows, or parts of one, were lost; and when and why last. */
  windowsEnded: z.number().int(),
  lastEndedAt: z.number().nullable(),
  lastEndReason: z.string().max(1_000).nullable(),
  /**
   * How often since the server was started the window was made shorter than its settings allow, and when and why last; null
   * where it never was, left out by an engine or an agent that cannot report it.
   */
  shortened: z
    .object({
      times: z.number().int().positive(),
      lastAt: z.number(),
      reason: z.string().max(1_000).nullable(),
    })
    .nullish(),
  sizeBytes: z.number(),
  /** Growth between the last two points; null before there are two. */
  bytesPerSecond: z.number().nullable(),
  /** How often a page could not be kept. */
  failures: z.number().int(),
  limits: FlashbackLimits,
})
export type FlashbackLog = z.infer<typeof FlashbackLog>

/** A moment from which pages can be rebuilt (`polar_flashback_points`). */
export const FlashbackPoint = z.object({ number: z.number().int(), at: z.number() })
export type FlashbackPoint = z.infer<typeof FlashbackPoint>

/** What images take in the log, from pages that were changed last (`polar_flashback_log_sample()`). */
export const FlashbackSample = z.object({
  pages: z.number().int().positive(),
  /** Mean size of a page without its empty middle, as an image in the WAL has it. */
  pageBytes: z.number().positive(),
  /** Mean size of its image in the log, compressed. */
  imageBytes: z.number().positive(),
})
export type FlashbackSample = z.infer<typeof FlashbackSample>

type LogWords = { title: string; tone: 'good' | 'warn' | 'neutral'; meaning: string }

const words: Record<FlashbackLogState, LogWords> = {
  off: {
    title: 'Off',
    tone: 'neutral',
    meaning: 'No old pages are kept, so no table of this instance can be flashed back.',
  },
  waiting: {
    title: 'Waiting for a window',
    tone: 'warn',
    meaning: 'The log is on. Its window begins when the next checkpoint is complete.',
  },
  on: {
    title: 'On',
    tone: 'good',
    meaning: 'Tables can be flashed back to any moment in the window.',
  },
}

/** What a person reads for the state of a flashback log. */
export const flashbackWords = ({ state }: Pick<FlashbackLog, 'state'>): LogWords => words[state]

/** What happened to the window counts as news for this long; later the window is an ordinary one. */
const WINDOW_NEWS_MS = 3_600_000

/** Whether a window, or a part of one, was lost lately. */
export const windowEndedLately = (log: FlashbackLog, now: number): boolean =>
  log.state !== 'off' && log.lastEndedAt !== null && now - log.lastEndedAt < WINDOW_NEWS_MS

/** Why and when the window was made shorter than its settings allow, if that was lately; it grows again where it may. */
export const windowShortenedLately = (log: FlashbackLog, now: number): FlashbackLog['shortened'] =>
  log.state !== 'off' && log.shortened && now - log.shortened.lastAt < WINDOW_NEWS_MS ? log.shortened : null

/** What was measured of an instance whose flashback log is off, per second. */
export type WritesMeasured = {
  /** Full-page images in the WAL. */
  imagesPerSecond: number
  /** Bytes of those that `full_page_writes = off` left out, before compression. */
  omittedBytesPerSecond: number
  /** All WAL, images among it. */
  walBytesPerSecond: number
}

/** What the flashback log would take. */
export type FlashbackForecast = {
  bytesPerHour: number
  /** How far back the window reaches at that rate; null where nothing bounds it because nothing is written. */
  windowMs: number | null
  /** The log when the window is as long as it gets. */
  logBytes: number
  /** WAL kept for the window; 0 without a fast recovery area, which alone keeps it. */
  walBytes: number
}

/**
 * The flashback log keeps each page at its first overwriting after a point, and points are taken with checkpoints. The WAL has
 * an image of each page at its first change after a checkpoint, so images show how many pages it will keep. What one takes there
 * a sample of such pages shows. Points that come more often than checkpoints did make the log larger.
 */
export function forecastFlashback(
  measured: WritesMeasured,
  sample: FlashbackSample,
  limits: FlashbackLimits,
): FlashbackForecast {
  const images = measured.imagesPerSecond + measured.omittedBytesPerSecond / sample.pageBytes
  const perMs = (images * sample.imageBytes) / 1_000
  const ofSize = limits.maxBytes ?? Number.POSITIVE_INFINITY
  const bytes = limits.recoveryArea ? ofSize : Math.min(ofSize, limits.keepBytes)
  const filledAfterMs = perMs > 0 ? bytes / perMs : Number.POSITIVE_INFINITY
  const windowMs = limits.recoveryArea ? Math.min(filledAfterMs, limits.rotationMs) : filledAfterMs
  const finite = Number.isFinite(windowMs)
  return {
    bytesPerHour: perMs * 3_600_000,
    windowMs: finite ? windowMs : null,
    logBytes: finite ? perMs * windowMs : 0,
    walBytes: finite && limits.recoveryArea ? (measured.walBytesPerSecond * windowMs) / 1_000 : 0,
  }
}

/** A moment with its time zone, to the microsecond: `2026-11-23T23:40:00.5+01:00`. A space may stand for the T. */
export const FlashbackTime = z
  .string()
  .regex(
    /^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?\s?(Z|[+-]\d{2}(:?\d{2})?)$/,
    'must be a date and time with a time zone, e.g. 2026-11-23T23:40:00+01:00',
  )
  .refine((text) => !Number.isNaN(millisecondsOf(text)), 'must be a date and time that exist')

/** ms since the epoch of a FlashbackTime. */
export function millisecondsOf(time: string): number {
  const iso = time
    .replace(/^(\S{10}) /, '$1T')
    .replace(/\s/, '')
    .replace(/([+-]\d{2})$/, '$1:00')
    .replace(/([+-]\d{2})(\d{2})$/, '$1:$2')
  return Date.parse(iso)
}

/**
 * The last moment at which a commit of this time (ms since the epoch, to the microsecond) does not count: all commits before it
 * do.
 */
export const momentBefore = (at: number): number => (Math.round(at * 1_000) - 1) / 1_000

/** A moment (ms since the epoch) to the microsecond, as a FlashbackTime: `2026-11-23T23:40:00.500123Z`. */
export function flashbackTimeOf(at: number, offsetMinutes = 0): string {
  const microseconds = Math.round(at * 1_000)
  const ms = Math.floor(microseconds / 1_000)
  const rest = microseconds - ms * 1_000
  const local = new Date(ms + offsetMinutes * 60_000).toISOString().replace('Z', '')
  const text = rest > 0 ? `${local}${String(rest).padStart(3, '0')}` : local.replace('.000', '')
  return `${text}${zoneOf(offsetMinutes)}`
}

const two = (n: number) => String(n).padStart(2, '0')

function zoneOf(offsetMinutes: number): string {
  if (offsetMinutes === 0) return 'Z'
  const size = Math.abs(offsetMinutes)
  return `${offsetMinutes < 0 ? '-' : '+'}${two(Math.floor(size / 60))}:${two(size % 60)}`
}
