import { expect, test } from 'vitest'
import { FLASHBACK_LOG_SOURCE, ProtectionState, protectionWords } from './protection'

const standby = { source: 'db2:5432/postgres', healthy: true }
const log = { source: FLASHBACK_LOG_SOURCE, healthy: true }

test('a standby is told nothing of a guard that writes images, nor that only standbys give pages', () => {
  for (const state of ProtectionState.exclude(['overridden']).options) {
    const words = protectionWords({ state, imagesInForce: null, sources: [] })
    expect(words.tone).toBe(protectionWords({ state, imagesInForce: true, sources: [] }).tone)
    expect(words.meaning).toContain('primary')
    expect(words.meaning).not.toMatch(/guard|from the standby/)
  }
  expect(protectionWords({ state: 'protected', imagesInForce: null, sources: [standby] }).title).toBe(
    'Protected by another member',
  )
})

test('a primary is told what its guard does', () => {
  expect(protectionWords({ state: 'exposed', imagesInForce: true, sources: [] }).meaning).toContain(
    'The guard re-enables full-page images',
  )
  expect(protectionWords({ state: 'protected', imagesInForce: false, sources: [standby] }).title).toBe(
    'Protected by a standby',
  )
})

test('an instance whose flashback log protects it is told so, whatever its role and its other sources', () => {
  for (const imagesInForce of [false, null]) {
    const words = (...sources: (typeof log)[]) =>
      protectionWords({ state: 'protected', imagesInForce, sources })
    expect(words(log).title).toBe('Protected by its flashback log')
    expect(words(log, { ...standby, healthy: false }).title).toBe('Protected by its flashback log')
    expect(words(log, standby).title).toBe('Protected by its flashback log and another member')
    expect(words({ ...log, healthy: false }, standby).title).not.toContain('flashback log')
  }
  expect(protectionWords({ state: 'full_page_writes', imagesInForce: true, sources: [log] }).title).toBe(
    'Protected by full-page images',
  )
})

test('the words say whether a power failure that stops every member at once is covered', () => {
  const meaning = (...sources: (typeof log)[]) =>
    protectionWords({ state: 'protected', imagesInForce: false, sources }).meaning
  expect(meaning(standby)).toMatch(/stops both hosts at once .*a standby does not/)
  expect(meaning(log)).toMatch(/also after a power failure that stops every member at once/)
  expect(meaning(log, standby)).toMatch(/The log also serves after a power failure/)
})
