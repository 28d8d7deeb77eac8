import { memo } from 'react'
import { classNames } from '../class-names'

/** Path of a line through values; a null breaks it. Exported for its test. */
export function sparklinePath(
  points: readonly { at: number; value: number | null }[],
  width: number,
  height: number,
  from: number,
  to: number,
): string {
  const max = Math.max(1e-9, ...points.map((p) => p.value ?? 0))
  let path = ''
  let down = false
  for (const p of points) {
    if (p.at < from || p.at > to) continue
    if (p.value === null) {
      down = false
      continue
    }
    const x = ((p.at - from) / Math.max(1, to - from)) * width
    const y = height - 1.5 - (Math.max(0, p.value) / max) * (height - 3)
    path += `${down ? 'L' : 'M'}${x.toFixed(1)} ${y.toFixed(1)}`
    down = true
  }
  return path
}

/** A small line without axes: the shape of the last minutes. `label` says in words what it shows. */
export const Sparkline = memo(function Sparkline({
  points,
  from,
  to,
  label,
  width = 120,
  height = 28,
  stale,
  className,
}: {
  points: readonly { at: number; value: number | null }[]
  from: number
  to: number
  label: string
  width?: number
  height?: number
  stale?: boolean
  className?: string
}) {
  const path = sparklinePath(points, width, height, from, to)
  return (
    <svg
      role="img"
      aria-label={label}
      viewBox={`0 0 ${width} ${height}`}
      width={width}
      height={height}
      className={classNames('block overflow-visible', stale && 'opacity-45 grayscale', className)}
    >
      <line x1={0} x2={width} y1={height - 1} y2={height - 1} stroke="var(--line-strong)" strokeWidth={1} />
      <path d={path} fill="none" stroke="var(--series-1)" strokeWidth={1.5} strokeLinejoin="round" />
    </svg>
  )
})
