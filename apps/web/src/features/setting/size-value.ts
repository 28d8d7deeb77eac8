const bytesOf: Record<string, number> = { B: 1, kB: 1024, MB: 1024 ** 2, GB: 1024 ** 3, TB: 1024 ** 4 }

/** Bytes in one unit of a setting as pg_settings names it: `8kB` is 8192; null where the unit is none of memory. */
export function unitBytes(unit: string | null): number | null {
  const match = /^(\d*)(B|kB|MB|GB|TB)$/.exec(unit ?? '')
  return match ? (match[1] ? Number(match[1]) : 1) * (bytesOf[match[2] as string] as number) : null
}

/**
 * Bytes that a text means for a memory setting, by PostgreSQL's rules: with one of its (case-sensitive) units, or
 * without, then in the setting's own unit. Null when it is no size.
 */
export function parseSize(text: string, unit: string | null): number | null {
  const own = unitBytes(unit)
  const match = /^(\d+(?:\.\d+)?)\s*(B|kB|MB|GB|TB)?$/.exec(text.trim())
  if (!match || own === null) return null
  return Math.round(Number(match[1]) * (match[2] ? (bytesOf[match[2]] as number) : own))
}

/** Bytes as SHOW prints them: the largest unit that divides them, `4MB`, `128kB`, `0`. */
export function formatSize(bytes: number): string {
  if (bytes === 0) return '0'
  for (const unit of ['TB', 'GB', 'MB', 'kB'] as const) {
    const size = bytesOf[unit] as number
    if (bytes % size === 0) return `${bytes / size}${unit}`
  }
  return `${bytes}B`
}

/** Stops of a slider from 0 over the powers of two of a unit (from the second on) to the greatest value. */
export function sizeStops(unit: string | null, max: string | null): number[] {
  const own = unitBytes(unit)
  const top = max === null || own === null ? null : Number(max) * own
  if (own === null || top === null || !Number.isFinite(top)) return []
  const stops = [0]
  for (let bytes = own * 2; bytes < top; bytes *= 2) stops.push(bytes)
  stops.push(top)
  return stops
}

/** The stop nearest to a value, by ratio. */
export function nearestStop(stops: readonly number[], bytes: number): number {
  let best = 0
  const distance = (stop: number) =>
    stop === 0 || bytes === 0 ? (stop === bytes ? 0 : Number.MAX_VALUE) : Math.abs(Math.log2(stop / bytes))
  stops.forEach((stop, i) => {
    if (distance(stop) < distance(stops[best] as number)) best = i
  })
  return best
}

/** Every stop as a tick of the slider; from the last one on every second has its size, so that none touches another. */
export function sizeTicks(stops: readonly number[]): { at: number; label?: string }[] {
  const labelled = (i: number) => i === 0 || ((stops.length - 1 - i) % 2 === 0 && i > 1)
  return stops.map((bytes, at) => (labelled(at) ? { at, label: formatSize(bytes) } : { at }))
}
