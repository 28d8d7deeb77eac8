import { expect, test } from 'vitest'
import { browserName } from './browser-name'
import { passphraseStrength } from './passphrase-strength'

test('a browser is named by what it is, not by what it also states', () => {
  const gecko = 'AppleWebKit/537.36 (KHTML, like Gecko)'
  expect(
    browserName(`Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${gecko} Chrome/139.0 Safari/537.36 Edg/139.0`),
  ).toBe('Edge on Windows')
  expect(
    browserName(`Mozilla/5.0 (Linux; Android 15; Pixel 9) ${gecko} Chrome/139.0 Mobile Safari/537.36`),
  ).toBe('Chrome on Android')
  expect(
    browserName('Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Mobile Safari/604.1'),
  ).toBe('Safari on iPhone')
  expect(browserName('Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0')).toBe(
    'Firefox on Linux',
  )
  expect(browserName('curl/8.0')).toBe('curl')
  expect([browserName(null), browserName('<script>')]).toEqual(['Unknown browser', 'Unknown browser'])
})

test('length and words make a passphrase strong, a single word with a digit does not', () => {
  expect(
    ['short', 'aaaaaaaaaaaaaaaa', 'passwordpassw', 'horse battery st', 'correct horse battery staple'].map(
      (text) => passphraseStrength(text).word,
    ),
  ).toEqual(['too short', 'weak', 'weak', 'fair', 'strong'])
})
