const NONE = '.'

/**
 * The id of an event of telemetry.stream: the newest number sent of each instance, in the order asked for, `41,-,7`.
 * A client that sends it again gets the samples after it, from any process of the console.
 */
export function formatEventId(positions: readonly (number | null)[]): string {
  // an event must have an id, also one of a stream without instances
  return positions.map((p) => (p === null ? '-' : String(p))).join(',') || NONE
}

/** The positions of an event id, or null when it is not one for this many instances. */
export function parseEventId(id: string, instances: number): (number | null)[] | null {
  const parts = id === NONE ? [] : id.split(',')
  if (parts.length !== instances || !parts.every((p) => p === '-' || /^-?\d{1,15}$/.test(p))) return null
  return parts.map((p) => (p === '-' ? null : Number(p)))
}
