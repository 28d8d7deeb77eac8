/** One family of metrics in the OpenMetrics text format. Counters are named without `_total`; the format adds it. */
export type MetricFamily = {
  name: string
  type: 'counter' | 'gauge' | 'info'
  unit?: string
  help: string
  points: { labels: Record<string, string>; value: number }[]
}

export const openMetricsType = 'application/openmetrics-text; version=1.0.0; charset=utf-8'

/** The families as OpenMetrics text, ended by `# EOF`. Families without points are left out; unknown is absent, not 0. */
export function formatOpenMetrics(families: readonly MetricFamily[]): string {
  const lines: string[] = []
  for (const f of families) {
    const points = f.points.filter((p) => Number.isFinite(p.value))
    if (points.length === 0) continue
    lines.push(`# TYPE ${f.name} ${f.type}`)
    if (f.unit) lines.push(`# UNIT ${f.name} ${f.unit}`)
    lines.push(`# HELP ${f.name} ${escapeText(f.help)}`)
    const suffix = f.type === 'counter' ? '_total' : f.type === 'info' ? '_info' : ''
    for (const p of points) lines.push(`${f.name}${suffix}${formatLabels(p.labels)} ${p.value}`)
  }
  return `${lines.join('\n')}\n# EOF\n`
}

function formatLabels(labels: Record<string, string>): string {
  const parts = Object.entries(labels).map(([name, value]) => `${name}="${escapeText(value)}"`)
  return parts.length > 0 ? `{${parts.join(',')}}` : ''
}

function escapeText(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
