import { expect, test } from 'vitest'
import {
  type DispatcherSeen,
  dispatcherFaultHint,
  dispatcherFaults,
  dispatcherFaultWords,
  formatWait,
  pinnedAdvice,
  type SharedServerSeen,
  sharedConnection,
  sharedServerMembers,
  sharedServerState,
  sharedServerWords,
  workersWords,
} from './shared-server'

const seen = (what: Partial<SharedServerSeen>): SharedServerSeen => ({
  port: 5433,
  enabled: true,
  dispatcher: 'running',
  ...what,
})

test('it is on only while a dispatcher answers, and a port without one is no state of rest', () => {
  expect(sharedServerState(seen({}))).toBe('on')
  expect(sharedServerState(seen({ enabled: false }))).toBe('native')
  expect(sharedServerState(seen({ port: null, dispatcher: null }))).toBe('off')
  for (const dispatcher of ['absent', 'stopped'] as const) {
    expect(sharedServerState(seen({ dispatcher }))).toBe('down')
    // whoever connects at the port is refused, shared or not
    expect(sharedServerState(seen({ dispatcher, enabled: false }))).toBe('down')
  }
})

test('of several dispatchers each that does not do its work is named, and the port is down with the first', () => {
  const works: DispatcherSeen = { number: 1, state: 'running', active: true, relayActive: null }
  const two = (...changes: Partial<DispatcherSeen>[]) =>
    seen({ dispatchers: changes.map((change, n) => ({ ...works, ...change, number: n + 1 })) })
  expect(dispatcherFaults(two({}, { active: null }, { relayActive: true }))).toEqual([])
  const all = two(
    {},
    { state: 'absent' },
    { state: 'stopped', active: false },
    { active: false },
    { relayActive: false },
  )
  expect(sharedServerState(all)).toBe('on')
  // it is on, and not all is well
  expect(sharedServerWords(all)).toMatchObject({ title: 'On, impaired', tone: 'warn' })
  expect(sharedServerWords(two({}, {}))).toMatchObject({ title: 'On', tone: 'good' })
  expect(dispatcherFaultHint(all)).toBe('The instance’s log says why.')
  // of a process that a signal stopped the log says nothing
  expect(dispatcherFaultHint(two({}, { state: 'stopped' }))).toContain('kill -CONT PID')
  expect(dispatcherFaultHint(two({}, { active: false }))).toBe('Restart the instance.')
  expect(dispatcherFaultHint(two({}, {}))).toBe('')
  expect(dispatcherFaultWords(all)).toEqual([
    'The engine has no dispatcher 2 of 5',
    'The dispatcher 3 of 5 is stopped by a signal',
    'The dispatcher 4 of 5 runs and does nothing',
    'The TLS relay of the dispatcher 5 of 5 runs and does nothing',
  ])
  for (const first of [{ state: 'absent' }, { active: false }] as const) {
    expect(sharedServerState(two(first, {}))).toBe('down')
    expect(dispatcherFaults(two(first, {})).map((f) => f.number)).toEqual([1])
  }
  expect(sharedServerState(two({ relayActive: false }))).toBe('on')
  expect(dispatcherFaultWords(two({ active: false }))).toEqual(['The dispatcher runs and does nothing'])
  // of an agent that knows of one only
  expect(dispatcherFaults(seen({}))).toEqual([])
  expect(dispatcherFaultWords(seen({ dispatcher: 'absent' }))).toEqual(['The engine has no dispatcher'])
  expect(dispatcherFaults(seen({ port: null, dispatcher: null }))).toEqual([])
})

test('a member without Shared Server is named where another has it, and one of which nothing is known is not', () => {
  const off = seen({ port: null, enabled: false, dispatcher: null })
  const of = (...members: (SharedServerSeen | null | undefined)[]) =>
    sharedServerMembers(members.map((sharedServer, i) => ({ name: `m${i}`, sharedServer })))
  expect(of(off, off)).toEqual({ missing: [], ports: [] })
  expect(of(seen({}), off, null, undefined)).toEqual({ missing: ['m1'], ports: [5433] })
  expect(of(seen({}), seen({ enabled: false }))).toEqual({ missing: ['m1'], ports: [5433] })
  expect(of(seen({}), seen({}), seen({ port: 5000, dispatcher: 'absent' }))).toEqual({
    missing: [],
    ports: [5000, 5433],
  })
})

test('every reason has advice of its own, and one that is not known has some', () => {
  const reasons = [
    'temporary objects',
    'session locks',
    'LISTEN',
    'cursors WITH HOLD',
    'prepared statements',
    'setseed',
    'size',
    'base backup',
    'replication origin',
    'temporary replication slots',
    'polar_ss_shared_memory_size',
    'library plperl',
    'setting temp_buffers',
    'setting work_mem',
    'something of a later engine',
  ]
  const given = reasons.map(pinnedAdvice)
  expect(new Set(given).size).toBe(reasons.length)
  // names come from the instance, which may choose any
  expect(pinnedAdvice('toString')).toBe(pinnedAdvice('something of a later engine'))
})

test('a library that pins is named as polar_ss_safe_modules takes it, save one that is not to be named there', () => {
  for (const reason of ['library pgaudit', 'library pgaudit.so'])
    expect(pinnedAdvice(reason)).toContain('add pgaudit to polar_ss_safe_modules (a reload)')
  // without quotes the list would fold it to lower case, or refuse it
  expect(pinnedAdvice('library My-Audit.so')).toContain('add "My-Audit" to polar_ss_safe_modules')
  for (const reason of ['library dblink', 'library plperl.so']) {
    expect(pinnedAdvice(reason)).toContain('at the instance’s own port')
    expect(pinnedAdvice(reason)).not.toContain('polar_ss_safe_modules')
  }
})

test('a wait is written with what matters of it', () => {
  expect([0.002, 0.128, 1.024, 16.384, 999, 1_500, 60_000].map(formatWait)).toEqual([
    '0.002 ms',
    '0.13 ms',
    '1 ms',
    '16 ms',
    '999 ms',
    '1.5 s',
    '60 s',
  ])
})

test('strings for the shared port leave TLS out, unless other hosts come in by it only', () => {
  const target = { host: '10.0.0.1', port: 5_432, user: 'postgres', database: 'postgres' }
  const access = { tls: true, listens: true, withoutTls: false, sessionsWithoutTls: 0 }
  expect(sharedConnection(target, { port: 5_999 }, access)).toMatchObject({
    shared: false,
    forms: { uri: 'postgresql://postgres@10.0.0.1:5999/postgres?sslmode=require' },
  })
  for (const other of [null, { ...access, listens: false }, { ...access, withoutTls: true }])
    expect(sharedConnection(target, { port: 5_999 }, other)).toMatchObject({
      shared: true,
      forms: { uri: 'postgresql://postgres@10.0.0.1:5999/postgres?sslmode=disable' },
    })
})

test('where TLS clients share backends the strings are those of the other port', () => {
  const target = { host: '10.0.0.1', port: 5_432, user: 'postgres', database: 'postgres' }
  const access = { tls: true, listens: true, withoutTls: false, sessionsWithoutTls: 0 }
  const uriFor = (of: typeof access | null) => {
    const { forms, shared } = sharedConnection(target, { port: 5_999, sharesTls: true }, of)
    expect(shared).toBe(true)
    return forms.uri
  }
  const plain = 'postgresql://postgres@10.0.0.1:5999/postgres'
  expect(uriFor(access)).toBe(`${plain}?sslmode=require`)
  for (const other of [null, { ...access, withoutTls: true }]) expect(uriFor(other)).toBe(plain)
  const on = seen({ sharesTls: true })
  expect(sharedServerWords(on).meaning).toContain('with TLS and without')
  expect(sharedServerWords({ ...on, enabled: false }).meaning).toContain('keeps a backend of its own')
})

test('workers beyond the limit are named as what they are', () => {
  expect(workersWords(8, 20)).toBe('8 of at most 20')
  expect(workersWords(22, 20)).toBe('20 and 2 in reserve, because sessions waited too long')
})
