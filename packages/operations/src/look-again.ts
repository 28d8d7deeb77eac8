import type { StepContext } from './step'

/** How long a controller that has just begun may be without reports of hosts that are well. */
const LOOK_AGAIN_MS = 10_000

/**
 * True while what is stored of hosts may be as old as the controller before this one: what looks like a refusal then is
 * looked at again before it counts.
 */
export const mayLookAgain = (context: Pick<StepContext, 'now' | 'controllerSince'>): boolean =>
  context.now.getTime() - context.controllerSince.getTime() < LOOK_AGAIN_MS
