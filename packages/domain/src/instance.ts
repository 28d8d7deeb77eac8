import { z } from 'zod'

/**
 * What an agent sees of an instance. `stopping`: it was ordered to stop, or its postmaster has ended and processes of it still
 * work. `crashed`: nothing works in it any more though nobody stopped it. `unknown` is never said by
 * an agent; readers say it when the last report is too old.
 */
export const instanceStates = [
  'creating',
  'stopped',
  'starting',
  'running',
  'stopping',
  'crashed',
  'deleting',
  'unknown',
] as const
export const InstanceState = z.enum(instanceStates)
export type InstanceState = z.infer<typeof InstanceState>

/** What was asked of an instance. The controller moves Observed towards it. */
export const InstanceIntent = z.enum(['running', 'stopped', 'deleted'])
export type InstanceIntent = z.infer<typeof InstanceIntent>

export const InstanceRole = z.enum(['primary', 'standby'])
export type InstanceRole = z.infer<typeof InstanceRole>

export type InstanceTransition = { from: InstanceState; to: InstanceState; because: string }

/** Every edge an agent may report. `because` is the log line. */
export const instanceTransitions: readonly InstanceTransition[] = [
  { from: 'creating', to: 'stopped', because: 'the data directory is initialised' },
  { from: 'creating', to: 'deleting', because: 'the creation was given up' },
  { from: 'stopped', to: 'starting', because: 'a start was ordered' },
  { from: 'stopped', to: 'deleting', because: 'a delete was ordered' },
  { from: 'starting', to: 'running', because: 'it answers SQL' },
  { from: 'starting', to: 'crashed', because: 'the process ended before it answered' },
  { from: 'starting', to: 'stopping', because: 'a stop was ordered while it started' },
  { from: 'running', to: 'stopping', because: 'a stop was ordered' },
  { from: 'running', to: 'crashed', because: 'the process ended unexpectedly' },
  {
    from: 'running',
    to: 'starting',
    because: 'it is up but does not answer SQL (crash recovery, or it hangs)',
  },
  { from: 'stopping', to: 'stopped', because: 'the process ended' },
  { from: 'stopping', to: 'running', because: 'the stop was given up' },
  { from: 'stopping', to: 'crashed', because: 'its last process ended unexpectedly' },
  { from: 'crashed', to: 'starting', because: 'a start was ordered after a crash' },
  { from: 'crashed', to: 'deleting', because: 'a delete was ordered' },
]

/** The log line of an edge, or undefined where no such edge exists. */
export function whyInstanceMoved(from: InstanceState, to: InstanceState): string | undefined {
  return instanceTransitions.find((t) => t.from === from && t.to === to)?.because
}

export const StopMode = z.enum(['fast', 'immediate'])
export type StopMode = z.infer<typeof StopMode>
