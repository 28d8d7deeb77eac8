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

/** An age or a duration for people: `3 s`, `4 min 30 s`, `2.0 h`, `5.0 d`. */
export function formatDuration(ms: number): string {
  if (!Number.isFinite(ms)) return '–'
  if (ms < 1_000) return `${Math.round(ms)} ms`
  const s = ms / 1_000
  if (s < 9.95) return `${s.toFixed(1)} s`
  // rounded first: 59.7 s is 1 min, and not 60 s
  const whole = Math.round(s)
  if (whole < 60) return `${whole} s`
  if (whole < 3_600) return `${Math.floor(whole / 60)} min${whole % 60 === 0 ? '' : ` ${whole % 60} s`}`
  if (s < 86_400) return `${(s / 3_600).toFixed(1)} h`
  return `${(s / 86_400).toFixed(1)} d`
}
