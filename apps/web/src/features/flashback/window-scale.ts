import { flashbackTimeOf } from '@floe/domain'

/** A stretch of time as it is drawn from left to right; shares are 0 to 1. */
export type Stretch = { from: number; to: number }

export const shareOf = ({ from, to }: Stretch, at: number): number =>
  to > from ? Math.min(1, Math.max(0, (at - from) / (to - from))) : 0

export const momentAt = ({ from, to }: Stretch, share: number): number =>
  Math.round(from + Math.min(1, Math.max(0, share)) * (to - from))

export const within = ({ from, to }: Stretch, at: number): number => Math.min(to, Math.max(from, at))

/**
 * The moment that a key moves to from another one; null of a key that moves nothing. Arrows move by a second, with Shift by ten;
 * PageUp and PageDown by a tenth of what is seen.
 */
export function movedBy(
  key: string,
  shift: boolean,
  window: Stretch,
  at: number,
  view: Stretch = window,
): number | null {
  const small = shift ? 10_000 : 1_000
  const large = Math.max(small, (view.to - view.from) / 10)
  const steps: Record<string, number> = {
    ArrowLeft: -small,
    ArrowDown: -small,
    ArrowRight: small,
    ArrowUp: small,
    PageDown: -large,
    PageUp: large,
    Home: Number.NEGATIVE_INFINITY,
    End: Number.POSITIVE_INFINITY,
  }
  const step = steps[key]
  return step === undefined ? null : Math.round(within(window, at + step))
}

/** The largest known value in a stretch; null where none is known. */
export function largestIn(
  points: readonly { at: number; value: number | null }[],
  { from, to }: Stretch,
): number | null {
  const values = points.flatMap((p) => (p.at >= from && p.at <= to && p.value !== null ? [p.value] : []))
  return values.length === 0 ? null : Math.max(...values)
}

/**
 * The outline of an area over a stretch in a box of 1000 by 100, the value axis beginning at 0; a piece for each run of known
 * values, so that nothing is drawn where nothing was measured.
 */
export function areaPaths(
  points: readonly { at: number; value: number | null; gapBefore: boolean }[],
  stretch: Stretch,
): string[] {
  const inside = points.filter((p) => p.at >= stretch.from && p.at <= stretch.to)
  const top = Math.max(1, largestIn(points, stretch) ?? 0)
  const runs: { x: number; y: number }[][] = []
  let run: { x: number; y: number }[] | null = null
  for (const { at, value, gapBefore } of inside) {
    if (value === null || gapBefore) run = null
    if (value === null) continue
    if (run === null) {
      run = []
      runs.push(run)
    }
    run.push({ x: shareOf(stretch, at) * 1_000, y: 100 - (value / top) * 95 })
  }
  const round = (n: number) => Math.round(n * 10) / 10
  return runs.map((points) => {
    const [first, last] = [points[0], points.at(-1)] as [{ x: number }, { x: number }]
    const line = points.map(({ x, y }) => `L${round(x)} ${round(y)}`).join('')
    return `M${round(first.x)} 100${line}L${round(last.x)} 100Z`
  })
}

/** A moment as a person writes it exactly: local time with its offset, `2026-11-23T23:40:00.500+01:00`. */
export const writtenMoment = (at: number, offsetMinutes = -new Date(at).getTimezoneOffset()): string =>
  flashbackTimeOf(at, offsetMinutes)
