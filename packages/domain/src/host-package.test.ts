import { describe, expect, test } from 'vitest'
import type { HostFacts } from './host'
import { buildAmong, compareVersions, type HostPackage, HostPackageList, planPackages } from './host-package'

const brought = (name: string, version: string, more: Partial<HostPackage> = {}): HostPackage => ({
  ...{
    name,
    version,
    architecture: 'amd64',
    distribution: 'debian-12',
    sizeBytes: 1,
    digest: 'a'.repeat(64),
  },
  ...more,
})
const agent = brought('floe-agent', '0.1.0+20261127.b')
const engine = brought('floe-engine', '18.4+20261127.b')
const build = brought('floe-engine-18.4-bbbb', '18.4+20261127.b')

const host = (more: object = {}, capabilities = ['task.install-packages']) => ({
  name: 'db1',
  capabilities,
  facts: {
    supervision: 'systemd',
    packages: {
      ...{ distribution: 'debian-12', architecture: 'amd64', accepted: true },
      installed: [
        { name: 'floe-agent', version: '0.1.0+20261126.a', status: 'installed' },
        { name: 'floe-engine', version: '18.4+20261127.b', status: 'installed' },
        { name: 'floe-engine-18.4-aaaa', version: '18.4+20261126.a', status: 'installed' },
      ],
    },
    ...more,
  } as unknown as HostFacts,
})

describe('the plan of packages', () => {
  test('says which package goes from which version to which', () => {
    expect(planPackages(host(), [agent, engine, build], false)).toEqual({
      blocker: null,
      changes: [
        { name: 'floe-agent', from: '0.1.0+20261126.a', to: '0.1.0+20261127.b', change: 'upgrade' },
        { name: 'floe-engine', from: '18.4+20261127.b', to: '18.4+20261127.b', change: 'none' },
        { name: 'floe-engine-18.4-bbbb', from: null, to: '18.4+20261127.b', change: 'install' },
      ],
    })
    expect(buildAmong([agent, engine, build])).toBe('18.4-bbbb')
    expect(buildAmong([agent])).toBeNull()
  })

  test('refuses an earlier version unless it is asked for', () => {
    const earlier = brought('floe-agent', '0.1.0+20261125.c')
    expect(planPackages(host(), [earlier], false).blocker?.code).toBe('package.downgrade')
    expect(planPackages(host(), [earlier], true).blocker).toBeNull()
  })

  test('refuses a host that cannot take packages, with the reason and what to do', () => {
    const why = (...[facts, capabilities]: Parameters<typeof host>) =>
      planPackages(host(facts, capabilities), [agent], false).blocker
    expect(why({}, [])?.code).toBe('host.older_agent')
    expect(why({ packages: undefined })).toMatchObject({
      code: 'host.not_packaged',
      hint: expect.stringContaining('./floe agent start'),
    })
    expect(why({ supervision: 'detached' })?.code).toBe('host.no_systemd')
    const { packages } = host().facts as HostFacts
    expect(why({ packages: { ...packages, accepted: false } as HostFacts['packages'] })).toMatchObject({
      code: 'host.packages_not_accepted',
      hint: expect.stringContaining('/etc/floe/accept-packages'),
    })
  })

  test('refuses packages of another machine, and those that do not belong together', () => {
    const why = (...packages: HostPackage[]) => planPackages(host(), packages, false).blocker?.code
    expect(why({ ...agent, architecture: 'arm64' })).toBe('package.other_machine')
    expect(why({ ...agent, distribution: 'ubuntu-24.04' })).toBe('package.other_machine')
    expect(why(engine, build)).toBe('package.incomplete')
    expect(why(agent, engine)).toBe('package.incomplete')
    expect(why(agent, build)).toBe('package.incomplete')
    expect(why(agent, agent)).toBe('package.incomplete')
  })

  test.each(['openssh-server', 'floe-agent-dbg', 'floe-engine-../x', 'floe-engine-', 'floe'])(
    '"%s" is no package of a host',
    (name) => expect(HostPackageList.safeParse([brought(name, '1')]).success).toBe(false),
  )
})

test.each([
  ['1.0', '1.0', 0],
  ['1.0', '1.0-0', 0],
  ['1.9', '1.10', -1],
  ['1.0~rc1', '1.0', -1],
  ['1:0.9', '1.0', 1],
  ['1.0a', '1.0+', -1],
  ['1.0-2', '1.0-10', -1],
  ['0.1.0+20261127081500.ab', '0.1.0+20261127081500.cd', -1],
  ['0.1.0+20261127081500.9a', '0.1.0+20261127081501.1a', -1],
  ['18.10+1', '18.9+2', 1],
  ['1.01', '1.1', 0],
])('version %s compared with %s is %i, as dpkg says', (a, b, order) => {
  expect(compareVersions(a, b)).toBe(order)
  expect(compareVersions(b, a) + order).toBe(0)
})
