const binary = ['B', 'kB', 'MB', 'GB', 'TB', 'PB']

/** Bytes as PostgreSQL writes them, powers of 1024: `4 MB`, `1.5 GB`. */
export function formatBytes(bytes: number, digits = 1): string {
  if (!Number.isFinite(bytes)) return '–'
  let value = Math.abs(bytes)
  let unit = 0
  while (value >= 1024 && unit < binary.length - 1) {
    value /= 1024
    unit++
  }
  const text = value >= 100 || Number.isInteger(value) ? Math.round(value).toString() : value.toFixed(digits)
  return `${bytes < 0 ? '-' : ''}${text} ${binary[unit]}`
}

/** An age or a duration for people: `3 s`, `4 min`, `2 h`, `5 d`. */
export function formatDuration(ms: number): string {
  if (!Number.isFinite(ms)) return '–'
  if (ms < 1_000) return `${Math.round(ms)} ms`
  const s = ms / 1_000
  if (s < 60) return `${s < 10 ? s.toFixed(1) : Math.round(s)} s`
  if (s < 3_600) return `${Math.floor(s / 60)} min`
  if (s < 86_400) return `${(s / 3_600).toFixed(1)} h`
  return `${(s / 86_400).toFixed(1)} d`
}
