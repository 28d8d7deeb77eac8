import { expect, test } from 'vitest'
import { Systemd, systemdArguments } from './supervise-systemd'
import { chooseSupervision } from './supervision'

const engine = {
  instanceId: 'b8f5',
  title: 'demo',
  file: '/prefix/bin/postgres',
  args: ['-D', '/instances/b8f5/pgdata', '-c', 'port=5500'],
  directory: '/',
  outputFile: '/nonexistent/start.log',
  user: { name: 'floe', uid: 999, gid: 999 },
}

test('systemd supervises only where it is the first process and the agent may start units', () => {
  expect(chooseSupervision(0, 'systemd').kind).toBe('systemd')
  expect(chooseSupervision(1000, 'systemd').kind).toBe('detached')
  expect(chooseSupervision(0, 'tini').kind).toBe('detached')
})

test('the unit runs as the engine’s user, tells its readiness, and lets a stop reach the postmaster alone', () => {
  const args = systemdArguments(engine)
  for (const wanted of ['User=floe', 'Type=notify', 'KillMode=mixed', 'KillSignal=SIGINT', 'Restart=no'])
    expect(args).toContain(`--property=${wanted}`)
  expect(args).toContain('--unit=floe-instance-b8f5.service')
  expect(args.slice(args.indexOf('--') + 1)).toEqual([engine.file, ...engine.args])
})

test('a failed unit of an earlier life does not stand in the way', async () => {
  const calls: string[][] = []
  const supervision = new Systemd(async (file, args) => {
    calls.push([file, ...args])
    return { status: 0, signal: null, stdout: '', stderr: '' }
  })
  await supervision.start(engine)
  expect(calls.map((c) => c[0])).toEqual(['systemctl', 'systemd-run'])
  expect(calls[0]).toEqual(['systemctl', 'reset-failed', 'floe-instance-b8f5.service'])
})

test('what systemd-run says when it refuses is the fault’s detail', async () => {
  const supervision = new Systemd(async (file) => ({
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
