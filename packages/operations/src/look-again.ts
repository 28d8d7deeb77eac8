import type { StepContext } from './step'

/**
 * True while what is stored of hosts may be as old as the controller before this one, or as a standstill of this one: what
 * looks like a refusal then is looked at again before it counts.
 */
export const mayLookAgain = (context: Pick<StepContext, 'now' | 'atWorkSince' | 'patience'>): boolean =>
  context.now.getTime() - context.atWorkSince.getTime() < context.patience.lookAgainMs

/** How long something has been waited for by a controller that was there to wait: a standstill does not count. */
export const waitedMs = (context: Pick<StepContext, 'now' | 'atWorkSince'>, since: Date): number =>
  context.now.getTime() - Math.max(since.getTime(), context.atWorkSince.getTime())
