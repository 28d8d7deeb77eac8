import type { ChartRow } from '@floe/ui'

/** Stored replay lag of one standby, as telemetry.history answers it for that metric alone. */
export type StoredLag = {
  stepSeconds: number
  points: readonly { at: number; gapBefore: boolean; average: readonly (number | null)[] }[]
}

/**
 * One row for each stretch of `stepSeconds` in which any standby was measured, so that members that are sampled at
 * moments of their own stand beside each other. Where one was not measured its line ends: its value is null.
 */
export function lagRows(members: readonly { key: string; history: StoredLag | undefined }[]): ChartRow[] {
  const stepMs = Math.max(1, ...members.map((m) => m.history?.stepSeconds ?? 1)) * 1_000
  const rows = new Map<number, ChartRow>()
  const rowOf = (slot: number, at: number) => {
    const row =
      rows.get(slot) ?? (Object.fromEntries([['at', at], ...members.map((m) => [m.key, null])]) as ChartRow)
    rows.set(slot, row)
    return row
  }
  const slotOf = (at: number) => Math.floor(at / stepMs)
  for (const { key, history } of members)
    history?.points.forEach(({ at, gapBefore, average }, n) => {
      const row = rowOf(slotOf(at), at)
      row.at = Math.max(row.at, at)
      row[key] = average[0] ?? null
      const before = history.points[n - 1]?.at
      if (!gapBefore || before === undefined) return
      // a row for the hole, whether or not another member was measured meanwhile
      const middle = (before + at) / 2
      const slot = slotOf(middle)
      if (slot > slotOf(before) && slot < slotOf(at)) rowOf(slot, middle)
    })
  return [...rows.values()].sort((a, b) => a.at - b.at)
}
