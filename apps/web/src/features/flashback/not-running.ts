import type { InstanceState } from '@floe/domain'

/** Why nothing can be done in an instance of this state; null where it runs. What a silent host leaves open is said as that. */
export function whyNotRunning(state: InstanceState): string | null {
  if (state === 'running') return null
  return state === 'unknown' ? 'Whether the instance runs is unknown.' : 'The instance does not run.'
}
