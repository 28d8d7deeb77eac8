import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { noLimits } from '@floe/domain'
import { afterEach, beforeEach, expect, test } from 'vitest'
import template from './floe-instance@.service'
import { isOfUnit, type RunCommand, Systemd, systemdArguments } from './supervise-systemd'
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
    'Slice=floe.slice',
    'CPUQuota=70%',
    'MemoryHigh=infinity',
    `MemoryMax=${4 * 1024 ** 3}`,
  ])
    expect(args).toContain(`--property=${wanted}`)
  expect(args).toContain('--unit=floe-instance-b8f5.service')
  expect(args.slice(args.indexOf('--') + 1)).toEqual([engine.file, ...engine.args])
  // what only the template has
  expect(args.join(' ')).not.toMatch(/Exec|Assert|CollectMode/)
})

test('nobody but the agent starts what is made from the template, and nothing starts it again', () => {
  expect(template).not.toMatch(/^(ExecStart|Restart|WantedBy|RequiredBy|Also)=/m)
  expect(template).not.toContain('[Install]')
  expect(template).toContain('\nAssertPathExists=/run/systemd/system/%n.d/order\n')
  expect(template).toContain('\nExecStartPre=+/bin/rm -f /run/systemd/system/%n.d/order\n')
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

let dropIns: string
beforeEach(() => {
  dropIns = mkdtempSync(join(tmpdir(), 'floe-drop-ins-'))
})
afterEach(() => rmSync(dropIns, { recursive: true, force: true }))

/** A systemd that only keeps what it is asked, with the template or without. */
function recorder(answers: { template: boolean; refuses?: string; stderr?: string }) {
  const calls: string[][] = []
  const run: RunCommand = async (file, args) => {
    calls.push([file, ...args])
    const refused = args[0] === 'cat' ? !answers.template : [file, args[0]].includes(answers.refuses)
    return {
      status: refused ? 1 : 0,
      signal: null,
      stdout: '',
      stderr: refused ? (answers.stderr ?? '') : '',
    }
  }
  return { calls, run }
}
const unit = 'floe-instance@b8f5.service'

test('a failed unit of an earlier life does not stand in the way', async () => {
  const { calls, run } = recorder({ template: false })
  await new Systemd(null, run, dropIns).start(engine)
  expect(calls.map((c) => c.slice(0, 2).join(' '))).toEqual([
    'systemctl reset-failed',
    'systemctl cat',
    'systemd-run --quiet',
  ])
  expect(calls[0]).toEqual(['systemctl', 'reset-failed', 'floe-instance-b8f5.service', unit])
  expect(readdirSync(dropIns)).toEqual([])
})

test('where the template is installed the unit is made from it, by an order for one start', async () => {
  mkdirSync(join(dropIns, `${unit}.d`))
  writeFileSync(join(dropIns, `${unit}.d`, '50-MemoryMax.conf'), 'of an earlier start')
  const { calls, run } = recorder({ template: true })
  const odd = { ...engine, directory: '/in stances/%h', args: ['-D', '/in stances/%h/pgdata', '-c', 'a=$b"'] }
  await new Systemd('floe-agent.service', run, dropIns).start(odd)
  expect(calls.slice(-2)).toEqual([
    ['systemctl', 'daemon-reload'],
    ['systemctl', 'start', '--no-block', unit],
  ])
  expect(readdirSync(join(dropIns, `${unit}.d`)).sort()).toEqual(['10-floe.conf', 'order'])
  const text = readFileSync(join(dropIns, `${unit}.d`, '10-floe.conf'), 'utf8')
  for (const line of [
    'Description=Floe instance demo',
    'Before=floe-agent.service',
    'User=floe-000000000001',
    'WorkingDirectory=/in stances/%%h',
    // a percentage of which systemd replaces nothing
    'CPUQuota=70%',
    'ExecStart="/prefix/bin/postgres" "-D" "/in stances/%%h/pgdata" "-c" "a=$$b\\""',
  ])
    expect(text).toContain(`\n${line}\n`)
})

test('what systemd says when it refuses is the fault’s detail', async () => {
  const stderr = 'Failed to start transient service unit: Unit already exists.\n'
  const { run } = recorder({ template: false, refuses: 'systemd-run', stderr })
  await expect(new Systemd(null, run, dropIns).start(engine)).rejects.toMatchObject({
    fault: { code: 'host.unit_not_started', detail: stderr.trim() },
  })
  const { run: other } = recorder({ template: true, refuses: 'daemon-reload', stderr: 'Access denied\n' })
  await expect(new Systemd(null, other, dropIns).start(engine)).rejects.toMatchObject({
    fault: { message: `could not start unit "${unit}"`, detail: 'Access denied' },
  })
  expect(existsSync(join(dropIns, `${unit}.d`))).toBe(true)
})
