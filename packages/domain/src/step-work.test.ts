import { expect, test } from 'vitest'
import { remainingWords, stepWorkWords } from './step-work'

test('a remaining time is said the more coarsely the longer it is', () => {
  const said = [0, 9, 12, 44, 58, 89, 185, 3_500, 3_600, 5_400, 40_000].map((s) => remainingWords(s * 1_000))
  expect(said).toEqual([
    'a few seconds left',
    'a few seconds left',
    'about 10 s left',
    'about 45 s left',
    'about 1 min left',
    'about 1 min left',
    'about 3 min left',
    'about 58 min left',
    'about 1 h left',
    'about 1 h 30 min left',
    'about 11 h left',
  ])
})

test('a longer time is never said as a shorter one', () => {
  const inSeconds = (words: string) => {
    const part = (unit: string) => Number(words.match(new RegExp(`(\\d+) ${unit}`))?.[1] ?? 0)
    return part('h') * 3_600 + part('min') * 60 + part('s')
  }
  let before = 0
  for (let s = 0; s < 100_000; s++) {
    const now = inSeconds(remainingWords(s * 1_000))
    if (now < before) expect.fail(`after ${s} s: ${now} s, after ${before} s`)
    before = now
  }
})

test('what is not known is left out, and a total that was passed is not believed', () => {
  const MB = 1024 ** 2
  expect(stepWorkWords({ doneBytes: 3 * MB, totalBytes: 10 * MB, remainingMs: 180_000 })).toBe(
    '3 MB of 10 MB, 30 %, about 3 min left',
  )
  expect(stepWorkWords({ doneBytes: 3 * MB, totalBytes: 10 * MB, remainingMs: null })).toBe(
    '3 MB of 10 MB, 30 %',
  )
  expect(stepWorkWords({ doneBytes: 3 * MB, totalBytes: null, remainingMs: null })).toBe('3 MB')
  expect(stepWorkWords({ doneBytes: 11 * MB, totalBytes: 10 * MB, remainingMs: null })).toBe('11 MB')
  expect(stepWorkWords({ doneBytes: 10 * MB - 1, totalBytes: 10 * MB, remainingMs: 100 })).toContain('99 %')
})
