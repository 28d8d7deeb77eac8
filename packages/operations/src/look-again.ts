import type { StepContext } from './step'

/** How long a controller that has just begun, or was stopped and goes on, may be without reports of hosts that are well. */
const LOOK_AGAIN_MS = 10_000

/**
 * True while what is stored of hosts may be as old as the controller before this one, or as a standstill of this one: what
 * looks like a refusal then is looked at again before it counts.
 */
export const mayLookAgain = (context: Pick<StepContext, 'now' | 'atWorkSince'>): boolean =>
  context.now.getTime() - context.atWorkSince.getTime() < LOOK_AGAIN_MS

/** How long something has been waited for by a controller that was there to wait: a standstill does not count. */
export const waitedMs = (context: Pick<StepContext, 'now' | 'atWorkSince'>, since: Date): number =>
  context.now.getTime() - Math.max(since.getTime(), context.atWorkSince.getTime())
