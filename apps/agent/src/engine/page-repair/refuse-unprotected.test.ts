import type { Protection } from '@floe/domain'
import { expect, test } from 'vitest'
import { type ProtectionEvidence, unprotectedFault } from './refuse-unprotected'

const source = (healthy: boolean) => ({
  source: '127.0.0.1:5501/postgres',
  healthy,
  why: healthy ? null : 'it does not stream',
  flushLsn: null,
  replayLsn: null,
  checkedAt: null,
})
const seen = (
  sources: Protection['sources'],
  more: Partial<NonNullable<ProtectionEvidence['running']>> = {},
): ProtectionEvidence => ({
  running: { fullPageWrites: 'on', guard: 'on', policy: 'checksum', dataChecksums: true, ...more },
  protection: {
    state: 'full_page_writes',
    since: 0,
    why: '',
    fullPageWrites: true,
    imagesInForce: true,
    guard: true,
    sources,
    recovery: null,
  },
})
const off = [{ name: 'full_page_writes', value: 'off' }]

test('off needs a healthy source, and the reason says what is missing', () => {
  expect(unprotectedFault(off, seen([source(true)]))).toBeNull()
  expect(unprotectedFault(off, seen([source(false), source(true)]))).toBeNull()
  expect(unprotectedFault(off, seen([]))).toMatchObject({
    code: 'setting.unprotected',
    detail: 'No standby is a page repair source.',
  })
  expect(unprotectedFault(off, seen([]))?.hint).toMatch(/standby.*polar_flashback_log_mode = sync/)
  expect(unprotectedFault(off, seen([source(false)]))?.detail).toContain('it does not stream')
  expect(unprotectedFault(off, seen([source(true)], { dataChecksums: false }))?.detail).toContain('checksums')
  expect(unprotectedFault(off, { ...seen([]), protection: null })?.hint).toContain('CREATE EXTENSION')
  expect(unprotectedFault(off, { running: null, protection: null })?.hint).toBe('Start it first.')
})

test('every word that PostgreSQL takes for off is one', () => {
  for (const value of ['off', 'OF', 'false', 'f', 'no', 'n', '0'])
    expect(unprotectedFault([{ name: 'Full_Page_Writes', value }], seen([]))).not.toBeNull()
  for (const value of ['on', 'true', '1', null])
    expect(unprotectedFault([{ name: 'full_page_writes', value }], seen([]))).toBeNull()
})

test('the guard off is the one override, before or in the same change; turning it on again takes it away', () => {
  const guard = (value: string | null) => [...off, { name: 'polar_page_repair_guard', value }]
  expect(unprotectedFault(guard('off'), seen([]))).toBeNull()
  expect(unprotectedFault(off, seen([], { guard: 'off' }))).toBeNull()
  expect(unprotectedFault(guard(null), seen([], { guard: 'off' }))).not.toBeNull()
})

test('what is off already is no change', () => {
  expect(unprotectedFault(off, seen([], { fullPageWrites: 'off' }))).toBeNull()
})

test('a policy that is off, or that the same change turns off, asks no source, however healthy it is', () => {
  const policy = (value: string | null) => [...off, { name: 'Polar_Page_Repair_Policy', value }]
  const healthy = [source(true)]
  expect(unprotectedFault(off, seen(healthy, { policy: 'off' }))).toMatchObject({
    detail: 'polar_page_repair_policy is off, so that recovery would ask no source.',
    hint: expect.stringMatching(/^Set polar_page_repair_policy to checksum or always first\./),
  })
  expect(unprotectedFault(policy('OFF'), seen(healthy))?.detail).toContain('would be off')
  expect(unprotectedFault(policy('always'), seen(healthy, { policy: 'off' }))).toBeNull()
  // the default is checksum
  expect(unprotectedFault(policy(null), seen(healthy, { policy: 'off' }))).toBeNull()
  expect(unprotectedFault(off, seen(healthy, { policy: 'off', guard: 'off' }))).toBeNull()
})
