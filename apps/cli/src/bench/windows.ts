/** One second of pgbench's own account. `at` is ms since the epoch. */
export type Progress = { at: number; tps: number }
/** A stretch of time with the treatment on or off. */
export type Window = { on: boolean; from: number; to: number }

/** Lines of `pgbench -P 1 --progress-timestamp`. */
export function parseProgress(output: string): Progress[] {
  return [...output.matchAll(/^progress: ([\d.]+) s, ([\d.]+) tps/gm)].map((m) => ({
    at: Number(m[1]) * 1000,
    tps: Number(m[2]),
  }))
}

/** on off off on …: a drift over time weighs on both alike. */
export function schedule(pairs: number): boolean[] {
  return Array.from({ length: pairs }, (_, i) => (i % 2 === 0 ? [true, false] : [false, true])).flat()
}

const mean = (values: number[]) => values.reduce((sum, v) => sum + v, 0) / values.length

export function median(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  return sorted.length % 2 === 1
    ? (sorted[middle] as number)
    : ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2
}

/** Mean TPS of each window, leaving out the first `settleMs` after a switch. Seconds that reach over an edge do not count. */
export function windowMeans(progress: Progress[], windows: Window[], settleMs: number): number[] {
  return windows.map(({ from, to }) => {
    const inside = progress.filter((p) => p.at - 1_000 >= from + settleMs && p.at <= to)
    if (inside.length === 0) throw new Error('a window holds no second that pgbench reported')
    return mean(inside.map((p) => p.tps))
  })
}

/**
 * What "on" costs, in percent of "off": the median over neighbouring pairs, and an interval of 95 % by resampling the
 * pairs. Negative where "on" happened to be faster.
 */
export function pairedCost(
  windows: Window[],
  means: number[],
  random: () => number = Math.random,
): { percent: number; low: number; high: number; pairs: number[] } {
  const pairs: number[] = []
  for (let i = 0; i + 1 < windows.length; i += 2) {
    const [a, b] = [windows[i] as Window, windows[i + 1] as Window]
    const on = means[a.on ? i : i + 1] as number
    const off = means[a.on ? i + 1 : i] as number
    if (a.on === b.on) throw new Error('windows do not come in pairs')
    pairs.push((1 - on / off) * 100)
  }
  const resampled = Array.from({ length: 4_000 }, () =>
    median(pairs.map(() => pairs[Math.floor(random() * pairs.length)] as number)),
  )
  resampled.sort((x, y) => x - y)
  return { percent: median(pairs), low: resampled[100] as number, high: resampled[3_899] as number, pairs }
}
