import { noLimits } from '@floe/domain'
import { expect, test } from 'vitest'
import { isOfUnit, Systemd, systemdArguments } from './supervise-systemd'
import { chooseSupervision } from './supervision'

const engine = {
  instanceId: 'b8f5',
  title: 'demo',
  file: '/prefix/bin/postgres',
  args: ['-D', '/instances/b8f5/pgdata', '-c', 'port=5500'],
  directory: '/',
  outputFile: '/nonexistent/start.log',
  user: { name: 'floe-000000000001', uid: 50001, gid: 50001 },
  writableDirectories: ['/instances/b8f5', '/run/floe/1/b8f5'],
  limits: { ...noLimits, cpu: 0.7, memoryMax: 4 * 1024 ** 3 },
  entrances: [],
}

test('systemd supervises only where it is the first process and the agent may start units', () => {
  expect(chooseSupervision(null, 0, 'systemd').kind).toBe('systemd')
  expect(chooseSupervision(null, 1000, 'systemd').kind).toBe('detached')
  expect(chooseSupervision(null, 0, 'tini').kind).toBe('detached')
})

test('the unit runs as the engine’s user, tells its readiness, and lets a stop reach the postmaster alone', () => {
  const args = systemdArguments(engine)
  for (const wanted of [
    'User=floe-000000000001',
    'Type=notify',
    'KillMode=mixed',
    'KillSignal=SIGINT',
    'Restart=no',
    'CPUQuota=70%',
    'MemoryHigh=infinity',
    `MemoryMax=${4 * 1024 ** 3}`,
  ])
    expect(args).toContain(`--property=${wanted}`)
  expect(args).toContain('--unit=floe-instance-b8f5.service')
  expect(args.slice(args.indexOf('--') + 1)).toEqual([engine.file, ...engine.args])
})

test('a shutdown of the machine stops an engine after the unit that the agent is started by', () => {
  expect(systemdArguments(engine, 'floe-0b0c2f34.service')).toContain(
    '--property=Before=floe-0b0c2f34.service',
  )
  expect(systemdArguments(engine).join(' ')).not.toContain('Before=')
})

test('a process is of a unit by its cgroup, whatever that lies in', () => {
  const unit = 'floe-instance-b8f5.service'
  expect(isOfUnit(`0::/floe.slice/${unit}\n`, unit)).toBe(true)
  expect(isOfUnit(`12:pids:/docker/1/floe.slice/${unit}\n1:name=systemd:/x\n`, unit)).toBe(true)
  expect(isOfUnit(`0::/floe.slice/${unit}/below\n`, unit)).toBe(true)
  expect(isOfUnit('0::/floe.slice/floe-instance-b8f5.service.d\n', unit)).toBe(false)
  expect(isOfUnit('0::/user.slice\n', unit)).toBe(false)
})

test('a failed unit of an earlier life does not stand in the way', async () => {
  const calls: string[][] = []
  const supervision = new Systemd(null, async (file, args) => {
    calls.push([file, ...args])
    return { status: 0, signal: null, stdout: '', stderr: '' }
  })
  await supervision.start(engine)
  expect(calls.map((c) => c[0])).toEqual(['systemctl', 'systemd-run'])
  expect(calls[0]).toEqual(['systemctl', 'reset-failed', 'floe-instance-b8f5.service'])
})

test('what systemd-run says when it refuses is the fault’s detail', async () => {
  const supervision = new Systemd(null, async (file) => ({
    status: file === 'systemd-run' ? 1 : 0,
    signal: null,
    stdout: '',
    stderr: 'Failed to start transient service unit: Unit already exists.\n',
  }))
  await expect(supervision.start(engine)).rejects.toMatchObject({
    fault: {
      code: 'host.unit_not_started',
      detail: 'Failed to start transient service unit: Unit already exists.',
    },
  })
})
