import type { InstanceId, SynchronousStandbys } from '@floe/domain'

/** The list with one of it a place nearer to the front (-1) or to the end (1); the same where there is no such place. */
export function moved(list: readonly InstanceId[], id: InstanceId, by: -1 | 1): InstanceId[] {
  const from = list.indexOf(id)
  const to = from + by
  const next = [...list]
  if (from < 0 || to < 0 || to >= list.length) return next
  next.splice(from, 1)
  next.splice(to, 0, id)
  return next
}

/** Whether two choices are the same to PostgreSQL: the order of the list counts for FIRST alone. */
export function sameSynchronous(a: SynchronousStandbys | null, b: SynchronousStandbys | null): boolean {
  if (!a || !b) return a === b
  const listOf = ({ method, instanceIds }: SynchronousStandbys) =>
    (method === 'first' ? [...instanceIds] : instanceIds.toSorted()).join()
  return a.method === b.method && a.count === b.count && a.strict === b.strict && listOf(a) === listOf(b)
}

/** The choice with which commits that wait go through and still wait for somebody; null where nobody is connected. */
export function waitingForFewer(
  current: SynchronousStandbys | null,
  { connected }: { connected: number },
): SynchronousStandbys | null {
  if (!current || connected < 1 || connected >= current.count) return null
  return { ...current, count: connected }
}
