import { expect, test } from 'vitest'
import { type IncidentKind, incident, incidentKey, incidentKindOf, incidentKinds } from './incident'

const kinds = Object.keys(incidentKinds) as IncidentKind[]

test('a key is the kind and its ids, as control databases hold them', () => {
  expect(incidentKey('host-offline', 'h')).toBe('host-offline:h')
  expect(incidentKey('disk-low', 'h', '/var')).toBe('disk-low:h:/var')
  expect(incidentKey('operation-step', 'o', 'start')).toBe('operation-step:o:start')
})

test.each(kinds)('a key of %s is parsed into what it was built from', (kind) => {
  const ids = incidentKinds[kind].about.map((name, i) => `${i}-${name}`)
  const key = [kind, ...ids].join(':')
  expect(incidentKindOf(key)).toMatchObject({ kind, ids, severity: incidentKinds[kind].severity })
})

test('the last id may hold colons', () => {
  const key = incidentKey('agent-problem', 'h', 'samples-not-stored:i')
  expect(incidentKindOf(key)?.ids).toEqual(['h', 'samples-not-stored:i'])
})

test('a kind that only an earlier version had is not known', () => {
  expect(incidentKindOf('gone:h')).toBeUndefined()
  expect(incidentKindOf('toString:h')).toBeUndefined()
  expect(incidentKindOf('host-offline')).toMatchObject({ kind: 'host-offline' })
})

test('an incident is as severe as its kind unless it says otherwise', () => {
  expect(incident('disk-low', ['h', '/'], { title: 't' })).toEqual({
    key: 'disk-low:h:/',
    severity: 'warning',
    title: 't',
  })
  expect(incident('disk-low', ['h', '/'], { title: 't', severity: 'critical' }).severity).toBe('critical')
})
