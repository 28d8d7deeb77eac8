const two = (n: number) => String(n).padStart(2, '0')

/** A moment in local time, as PostgreSQL logs it: `2026-11-24 14:03:12.345`, with microseconds where it has some. */
export function momentText(at: number): string {
  const microseconds = Math.round(at * 1_000)
  const d = new Date(Math.floor(microseconds / 1_000))
  const rest = microseconds % 1_000
  const day = `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}`
  const time = `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`
  const three = (n: number) => String(n).padStart(3, '0')
  return `${day} ${time}.${three(d.getMilliseconds())}${rest === 0 ? '' : three(rest)}`
}

/** The zone of local times at a moment, by its name and its offset: `Europe/Berlin, UTC+01:00`. */
export function zoneText(at: number): string {
  const offset = -new Date(at).getTimezoneOffset()
  const size = Math.abs(offset)
  const name = Intl.DateTimeFormat().resolvedOptions().timeZone
  return `${name}, UTC${offset < 0 ? '−' : '+'}${two(Math.floor(size / 60))}:${two(size % 60)}`
}

const unitMs: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const ago = /^-?\s*(\d+(?:\.\d+)?)\s*(s|m|h|d)[a-z]*(?:\s+ago)?$/i
const clock = /^(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,6}))?)?$/
const whole =
  /^(\d{4})-(\d{2})-(\d{2})[T\s]+(\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,6}))?)?\s*(Z|UTC|GMT|[+-]\d{2}(?::?\d{2})?)?$/i

/** Of a fraction of a second: its ms, and the rest of them in thousandths. */
const partsOf = (fraction: string | undefined): [ms: number, microseconds: number] => {
  const digits = (fraction ?? '').padEnd(6, '0')
  return [Number(digits.slice(0, 3)), Number(digits.slice(3))]
}

const exactly = (ms: number, microseconds: number) => (ms * 1_000 + microseconds) / 1_000

/** Whether the parts are those of a time that exists; the Date constructor would count on from the 32nd. */
const exist = (month: number, day: number, hour: number, minute: number, second: number) =>
  month >= 1 &&
  month <= 12 &&
  day >= 1 &&
  day <= new Date(2024, month, 0).getDate() &&
  hour < 24 &&
  minute < 60 &&
  second < 60

function offsetMs(zone: string): number {
  if (/^(z|utc|gmt)$/i.test(zone)) return 0
  const digits = zone.replace(/\D/g, '').padEnd(4, '0')
  const minutes = Number(digits.slice(0, 2)) * 60 + Number(digits.slice(2))
  return (zone.startsWith('-') ? -minutes : minutes) * 60_000
}

/**
 * The moment that a person means: date and time, local or with a zone; a time alone, which is its latest one up to now; or
 * `10 min ago`. Null where it is none of these.
 */
export function momentOfText(text: string, now: number): number | null {
  const said = text.trim()
  const back = ago.exec(said)
  if (back) return Math.floor(now - Number(back[1]) * (unitMs[back[2]?.toLowerCase() ?? ''] ?? 0))
  const time = clock.exec(said)
  if (time) {
    const [hour, minute, second] = [Number(time[1]), Number(time[2]), Number(time[3] ?? 0)]
    if (!exist(1, 1, hour, minute, second)) return null
    const d = new Date(now)
    const [ms, microseconds] = partsOf(time[4])
    d.setHours(hour, minute, second, ms)
    if (d.getTime() > now) d.setDate(d.getDate() - 1)
    return exactly(d.getTime(), microseconds)
  }
  const full = whole.exec(said)
  if (!full) return null
  const [year, month, day, hour, minute, second] = [1, 2, 3, 4, 5, 6].map((i) => Number(full[i] ?? 0)) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ]
  if (!exist(month, day, hour, minute, second)) return null
  const [ms, microseconds] = partsOf(full[7])
  const at = full[8]
    ? Date.UTC(year, month - 1, day, hour, minute, second, ms) - offsetMs(full[8])
    : new Date(year, month - 1, day, hour, minute, second, ms).getTime()
  return exactly(at, microseconds)
}
