/**
 * A look that may take a while, and must not overlap with itself. Who asks gets one that began after the question: one that
 * was under way may have seen what is no longer so. Questions that wait share one.
 */
export function freshLook(look: () => Promise<void>): () => Promise<void> {
  let underWay: Promise<void> | null = null
  let next: Promise<void> | null = null
  const begin = (): Promise<void> => {
    underWay = look().finally(() => {
      underWay = null
    })
    return underWay
  }
  return () => {
    if (!underWay) return begin()
    next ??= underWay
      .catch(() => {})
      .then(() => {
        next = null
        return begin()
      })
    return next
  }
}
