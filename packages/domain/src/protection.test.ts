import { expect, test } from 'vitest'
import { ProtectionState, protectionWords } from './protection'

test('a standby is told nothing of a guard that writes images, nor that only standbys give pages', () => {
  for (const state of ProtectionState.exclude(['overridden']).options) {
    const words = protectionWords({ state, imagesInForce: null })
    expect(words.tone).toBe(protectionWords({ state, imagesInForce: true }).tone)
    expect(words.meaning).toContain('primary')
    expect(words.meaning).not.toMatch(/guard|from the standby/)
  }
  expect(protectionWords({ state: 'protected', imagesInForce: null }).title).toBe(
    'Protected by another member',
  )
})

test('a primary is told what its guard does', () => {
  expect(protectionWords({ state: 'exposed', imagesInForce: true }).meaning).toContain(
    'The guard re-enables full-page images',
  )
  expect(protectionWords({ state: 'protected', imagesInForce: false }).title).toBe('Protected by a standby')
})
