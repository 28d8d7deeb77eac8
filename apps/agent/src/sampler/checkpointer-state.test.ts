import { expect, test } from 'vitest'
import { HungSleep, lookAtSleep, placeIn, type SleepSeen, switchesIn } from './checkpointer-state'

// recorded with a kernel 6.18: a process that writes into a frozen ext4 (fsfreeze), looked at once a second
const frozen: SleepSeen[] = [0, 1_001, 2_000, 3_002].map((at) => ({
  ...{ at, pid: 4_101, startTicks: 88_000, state: 'D', switches: 50, place: 'percpu_rwsem_wait' },
}))
const shown = (looks: readonly (SleepSeen | null)[]) => {
  const hung = new HungSleep()
  return looks.map((look) => hung.see(look))
}

test('one sleep that lasts for two seconds hangs, and is named by its place', () => {
  expect(shown(frozen)).toEqual([null, null, 'percpu_rwsem_wait', 'percpu_rwsem_wait'])
  expect(shown(frozen.map((f) => ({ ...f, place: null })))).toEqual([null, null, '', ''])
})

test('who is woken up by slow storage does not hang, however long that takes', () => {
  // recorded while an fsync of 600 scattered pages took 5.9 s on a device of 100 writes a second
  const counted = [84, 97, 108, 119]
  const slow = frozen.map((f, i) => ({
    ...f,
    switches: counted[i] ?? null,
    place: 'add_transaction_credits',
  }))
  expect(shown(slow)).toEqual([null, null, null, null])
  const once = frozen.map((f, i) => ({ ...f, switches: i < 2 ? 50 : 51 }))
  expect(shown(once)).toEqual([null, null, null, null])
})

test('it ends with the sleep, and another process that has the pid has its own', () => {
  const [first, second, third, fourth] = frozen as [SleepSeen, SleepSeen, SleepSeen, SleepSeen]
  const awake = { ...third, state: 'S', switches: null, place: null }
  expect(shown([first, second, awake, fourth])).toEqual([null, null, null, null])
  expect(shown([first, second, null, fourth])).toEqual([null, null, null, null])
  expect(shown([first, second, { ...third, startTicks: 99_000 }])).toEqual([null, null, null])
  // a kernel that does not count tells nothing
  expect(shown(frozen.map((f) => ({ ...f, switches: null })))).toEqual([null, null, null, null])
})

test('what the kernel writes is read, and of a child only', () => {
  expect(switchesIn('Name:\tx\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t1\n')).toBe(151)
  expect(switchesIn('Name:\tx\n')).toBeNull()
  expect(switchesIn(null)).toBeNull()
  expect(placeIn('percpu_rwsem_wait')).toBe('percpu_rwsem_wait')
  expect([placeIn('0'), placeIn(''), placeIn(null)]).toEqual([null, null, null])
  expect(lookAtSleep(process.pid, process.ppid, 1)).toMatchObject({ pid: process.pid, switches: null })
  expect(lookAtSleep(process.pid, process.pid, 1)).toBeNull()
  expect(lookAtSleep('1', 0, 1)).toBeNull()
})
