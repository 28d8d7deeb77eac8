import type { ClusterId, InstanceId } from '@floe/domain'
import { Command } from 'commander'
import { beforeEach, expect, test, vi } from 'vitest'
import { addClusterSetting, addSetting } from './setting'

const instanceId = '00000000-0000-4000-8000-000000000001' as InstanceId
const clusterId = '00000000-0000-4000-8000-000000000002' as ClusterId
/** What the console was asked, and what it answers. */
const asked: [string, Record<string, unknown>][] = []
const answers: Record<string, unknown> = {}
const procedure = (path: string) => {
  const ask = async (input: Record<string, unknown>) => {
    asked.push([path, input])
    return answers[path]
  }
  return { query: ask, mutate: ask }
}
vi.mock('./find-instance', () => ({
  openConsole: () => ({
    trpc: { setting: new Proxy({}, { get: (_, verb) => procedure(`setting.${String(verb)}`) }) },
  }),
  findInstance: async () => ({ instanceId }),
}))
vi.mock('./find-cluster', () => ({ findCluster: async () => ({ cluster: { clusterId } }) }))

const lines: string[] = []
beforeEach(() => {
  asked.length = 0
  lines.length = 0
  process.exitCode = 0
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => lines.push(String(text)) > 0)
  return () => {
    vi.restoreAllMocks()
    process.exitCode = 0
  }
})

const floe = async (...words: string[]) => {
  const program = new Command()
  addSetting(program)
  addClusterSetting(program.command('cluster'))
  await program.parseAsync(words, { from: 'user' })
  return lines.join('')
}

const value = (shown: string, pending: string | null = null) => ({ shown, pending, source: 'default' })
const member = (name: string, more: object = {}) => ({ name, fault: null, ...more })

test('an instance and a cluster are listed by one verb; only several members have a column each', async () => {
  const setting = { name: 'max_connections', impact: 'restart', ordered: true, notable: true, tooSmallOn: [] }
  answers['setting.list'] = {
    members: [member('shop')],
    settings: [{ ...setting, differs: false, values: [value('100', '200')] }],
  }
  const one = await floe('setting', 'list', 'shop', 'max_connections')
  expect(one).toMatch(/name +value +source +takes effect/)
  expect(one).toContain('after a restart: 200')
  expect(one).not.toContain('in order')

  answers['setting.list'] = {
    members: [member('shop'), member('shop-2')],
    settings: [
      { ...setting, differs: true, tooSmallOn: ['shop-2'], values: [value('100'), value('50')] },
      { ...setting, name: 'work_mem', notable: false, differs: false, values: [value('4MB'), value('4MB')] },
    ],
  }
  for (const words of [
    ['setting', 'list', '--cluster', 'shop'],
    ['cluster', 'setting', 'list', 'shop'],
  ]) {
    lines.length = 0
    const both = await floe(...words)
    expect(both).toMatch(/name +shop +shop-2 +takes effect/)
    expect(both).toContain('TOO SMALL on shop-2')
    // what is alike everywhere is listed when it is asked for
    expect(both).not.toContain('work_mem')
  }
  expect(asked.map(([, input]) => input.scope)).toEqual([{ instanceId }, { clusterId }, { clusterId }])
  expect(await floe('setting', 'list', '--cluster', 'shop', '--all')).toContain('work_mem')
})

test('a change goes to whom the name means, with or without restarts', async () => {
  answers['setting.set'] = { operationId: 'o' }
  await floe('setting', 'set', 'shop', 'work_mem=DEFAULT', '--no-wait')
  await floe('setting', 'set', 'shop', 'work_mem=8MB', '--cluster', '--no-restart', '--no-wait')
  await floe('cluster', 'setting', 'set', 'shop', 'work_mem=8MB', '--reason', 'spills', '--no-wait')
  expect(asked.map(([, { idempotencyKey: _, ...input }]) => input)).toEqual([
    { scope: { instanceId }, changes: [{ name: 'work_mem', value: null }], restart: true },
    { scope: { clusterId }, changes: [{ name: 'work_mem', value: '8MB' }], restart: false },
    { scope: { clusterId }, changes: [{ name: 'work_mem', value: '8MB' }], restart: true, reason: 'spills' },
  ])
})

test('a check says per member what would happen, and fails where it would be refused', async () => {
  const result = { name: 'work_mem', oldValue: '4MB', newValue: '8MB', impact: 'reload', fault: null }
  answers['setting.check'] = {
    members: [member('shop', { results: [result] }), member('shop-2', { results: [result] })],
    phases: [{ phase: 'primary', members: [{ name: 'shop', changes: [], restart: false }] }],
    faults: [{ code: 'member.fenced', message: 'member "shop-2" is fenced' }],
    warnings: [{ code: 'setting.pins_sessions', message: 'what is refused brings nothing along' }],
    notes: [],
  }
  const check = await floe('setting', 'roll-back', '--cluster', 'shop', '7', '--check')
  expect(check).toMatch(/member +name +old +new/)
  expect(check).toContain('REFUSED: ')
  expect(check).not.toContain('WARNING: ')
  expect(process.exitCode).toBe(1)
  expect(asked).toEqual([['setting.check', { scope: { clusterId }, revisionId: '7' }]])
})

test('a check tells what a change brings along, and does not fail for it', async () => {
  const warning = {
    code: 'setting.pins_sessions',
    message: 'no session would share its backend, because of library "pgaudit"',
    hint: 'Add it to polar_ss_safe_modules.',
  }
  const change = { name: 'polar_ss_port', oldValue: '0', newValue: '6500', impact: 'restart', fault: null }
  const results = [{ ...change, warning }]
  answers['setting.check'] = {
    members: [member('shop', { results }), member('shop-2', { results })],
    phases: [{ phase: 'primary', members: [{ name: 'shop', changes: [], restart: false }] }],
    faults: [],
    warnings: [warning],
    notes: [],
  }
  const check = await floe('setting', 'set', '--cluster', 'shop', 'polar_ss_port=6500', '--check')
  expect(check.match(/WARNING: .*library "pgaudit"/g)).toHaveLength(1)
  expect(check).toContain('Add it to polar_ss_safe_modules.')
  expect(process.exitCode).toBe(0)
})

test('scripts of earlier versions still read states of settings, which the help does not name', async () => {
  answers['setting.revisions'] = {
    members: [member('shop')],
    revisions: [
      {
        revisionId: '7',
        at: 0,
        actorName: 'Ada',
        reason: null,
        changed: ['shop'],
        members: [member('shop', { managed: { work_mem: '8MB' }, changes: [] })],
      },
    ],
  }
  const states = JSON.parse(await floe('setting', 'states', 'shop', '--json'))
  expect(states).toMatchObject([{ stateId: '7', managed: { work_mem: '8MB' }, changes: [] }])
  lines.length = 0
  const revisions = JSON.parse(await floe('setting', 'revisions', 'shop', '--json'))
  expect(revisions).toMatchObject([{ revisionId: '7', members: [{ managed: { work_mem: '8MB' } }] }])
  expect(revisions[0]).not.toHaveProperty('stateId')
  const program = new Command()
  addSetting(program)
  const help = program.commands[0]?.helpInformation() ?? ''
  expect(help).toContain('revisions')
  expect(help).not.toContain('states')
})
