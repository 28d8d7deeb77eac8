import { z } from 'zod'
import { formatBytes } from './format'

/** How far a step is that works through bytes. What is not known is null, never 0. */
export const StepWork = z.object({
  doneBytes: z.number().nonnegative(),
  /** As announced; may be an estimate that turns out too small. */
  totalBytes: z.number().nonnegative().nullable(),
  /** What the rest takes at the pace that was measured recently, ms. */
  remainingMs: z.number().nonnegative().nullable(),
})
export type StepWork = z.infer<typeof StepWork>

/** A remaining time as a person says it, in steps so coarse that it does not flicker: `about 3 min left`. */
export function remainingWords(ms: number): string {
  const s = ms / 1_000
  if (s < 10) return 'a few seconds left'
  if (s < 57.5) return `about ${Math.max(10, Math.round(s / 5) * 5)} s left`
  if (s < 3_570) return `about ${Math.max(1, Math.round(s / 60))} min left`
  const minutes = Math.round(s / 600) * 10
  const [h, min] = [Math.floor(minutes / 60), minutes % 60]
  if (h >= 10 || min === 0) return `about ${Math.round(minutes / 60)} h left`
  return `about ${h} h ${min} min left`
}

/** `1.2 GB of 4 GB, 30 %, about 3 min left`; what is not known is left out. */
export function stepWorkWords({ doneBytes, totalBytes, remainingMs }: StepWork): string {
  // an announced total that was passed says nothing any more
  const known = totalBytes !== null && totalBytes > 0 && doneBytes <= totalBytes
  return [
    known ? `${formatBytes(doneBytes)} of ${formatBytes(totalBytes)}` : formatBytes(doneBytes),
    // never 100 % before it is done
    ...(known ? [`${Math.floor((doneBytes / totalBytes) * 100)} %`] : []),
    ...(remainingMs === null ? [] : [remainingWords(remainingMs)]),
  ].join(', ')
}
