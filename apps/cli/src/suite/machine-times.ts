import { cpus } from 'node:os'

/** What all processors of the machine have spent since it started, ms. */
export type MachineTimes = { atWork: number; idle: number }

export function machineTimes(): MachineTimes {
  const sum = { atWork: 0, idle: 0 }
  for (const { times } of cpus()) {
    sum.idle += times.idle
    sum.atWork += times.user + times.nice + times.sys + times.irq
  }
  return sum
}

/** The share of the time between two moments that the processors worked, whoever for: `87 %`. */
export function shareAtWork(before: MachineTimes, after: MachineTimes): string {
  const atWork = after.atWork - before.atWork
  const all = atWork + after.idle - before.idle
  return all > 0 ? `${Math.round((100 * atWork) / all)} %` : 'unknown'
}
