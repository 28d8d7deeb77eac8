import type { HostUpgrade, HostUpgradePlan } from '@floe/domain'
import { expect, test } from 'vitest'
import { formatUpgraded, formatUpgradePlan } from './host-upgrade'

const plan: HostUpgradePlan = {
  build: 'release-2',
  blocker: null,
  clusters: [
    {
      cluster: 'one',
      primary: 'one',
      steps: [
        { action: 'restart-standby', member: 'one-2', text: 'Restart standby "one-2".' },
        { action: 'switchover', member: 'one-3', text: 'Switch over to "one-3".' },
      ],
      left: [],
    },
    { cluster: 'off', primary: 'off', steps: [], left: [{ member: 'off', why: 'it is stopped' }] },
  ],
  current: ['new'],
}
const ended: HostUpgrade = {
  ...{
    upgradeId: 'u',
    hostId: 'h' as never,
    build: 'release-2',
    switchBack: true,
    except: [],
    ...{ packages: null, downgrade: false, installed: null },
    actorName: 'ada',
  },
  ...{ createdAt: 1, cancelAskedAt: null, endedAt: 2, message: null, fault: null },
  ordered: [false, true].map((back) => ({
    ...{
      cluster: 'one',
      clusterId: 'c' as never,
      operationId: 'o' as never,
      back,
      state: 'succeeded' as const,
    },
  })),
  left: [{ member: 'off', why: 'it is stopped' }],
}

test('a plan numbers what happens in order, and names what is left and how to go on', () => {
  expect(formatUpgradePlan('db1', plan, null)).toBe(`Installed on host "db1": engine build release-2.
On it already: new.

Cluster "one":
  1. Restart standby "one-2".
  2. Switch over to "one-3".

Left as they are:
  "off": it is stopped.

Nothing has been changed. To do this: ./floe host upgrade db1 --confirm db1`)
})

test('with packages it says which goes from which version to which, and repeats how they were named', () => {
  const packages = [
    { name: 'floe-agent', from: '0.1.0+1.a', to: '0.1.0+2.b', change: 'upgrade' as const },
    { name: 'floe-engine', from: '18.4+2.b', to: '18.4+1.a', change: 'downgrade' as const },
    { name: 'floe-engine-18.4-a', from: null, to: '18.4+1.a', change: 'install' as const },
  ]
  const text = formatUpgradePlan(
    'db1',
    { ...plan, clusters: [], packages },
    null,
    ' --packages debs --downgrade',
  )
  expect(text).toBe(`Packages of host "db1":
  floe-agent goes from 0.1.0+1.a to 0.1.0+2.b.
  floe-engine goes back from 18.4+2.b to 18.4+1.a.
  floe-engine-18.4-a 18.4+1.a is installed beside what is there.
The agent is stopped and started by it; instances keep running.

Installed then: engine build release-2.
On it already: new.

Nothing has been changed. To do this: ./floe host upgrade db1 --packages debs --downgrade --confirm db1`)
  const installed = packages.map((p) => ({ ...p, change: 'none' as const }))
  expect(formatUpgradePlan('db1', { ...plan, clusters: [], packages: installed }, null)).toContain(
    'There is nothing to do.',
  )
})

test('where nothing can be moved no command is offered, and a blocker stands alone', () => {
  const nothing = formatUpgradePlan('db1', { ...plan, clusters: [] }, null)
  expect(nothing).toContain('There is nothing to do.')
  expect(nothing).not.toContain('--confirm')
  const blocker = { code: 'host.silent', message: 'host "db1" does not answer', detail: null, hint: 'Look.' }
  expect(formatUpgradePlan('db1', { ...plan, blocker }, null)).toBe(
    'Host "db1" cannot be upgraded now: host "db1" does not answer.\nLook.',
  )
})

test('the end names each cluster once, and what stayed', () => {
  expect(formatUpgraded('db1', ended)).toBe(`On engine build release-2 now, on host "db1": cluster "one".
Left as it is: "off": it is stopped.`)
})
