import type { Fault } from '@floe/domain'

/** Faults that every list of the page meets alike: the first card of the page says them, the others are left out. */
const common = ['agent.older', 'flashback.older_engine', 'flashback.not_prepared']

/** Whether a fault need not be said again: `above` is what stands at the top of the page. */
export const isSaidOnce = (fault: Fault | null, above: Fault | null): boolean =>
  fault !== null && (common.includes(fault.code) || fault.code === above?.code)
