import { expect, test } from 'vitest'
import {
  conflictsInWords,
  doesNothing,
  freeResultName,
  isGivenBack,
  mergedInWords,
  sameOptions,
  standardMerge,
} from './merge-plan'

test('a merge brings rows back and takes none away, unless somebody says so', () => {
  expect(standardMerge).toEqual({ insertMissing: true, restoreChanged: true, deleteAdded: false })
  expect(doesNothing(standardMerge)).toBe(false)
  expect(doesNothing({ insertMissing: false, restoreChanged: false, deleteAdded: false })).toBe(true)
  expect(sameOptions(standardMerge, { ...standardMerge })).toBe(true)
  expect(sameOptions(standardMerge, { ...standardMerge, deleteAdded: true })).toBe(false)
})

test('what a merge came to is told without what did not happen', () => {
  const none = { inserted: 0, restored: 0, deleted: 0, conflicts: 0 }
  expect(mergedInWords(none)).toBe('No row changed')
  expect(mergedInWords({ ...none, inserted: 12_345, restored: 1 })).toBe(
    '12,345 rows inserted, 1 row restored',
  )
  expect(conflictsInWords(none)).toBe('')
  expect(conflictsInWords({ ...none, conflicts: 1 })).toBe(' 1 conflict was left out.')
  expect(conflictsInWords({ ...none, conflicts: 1_200 })).toBe(' 1,200 conflicts were left out.')
})

test('a dropped table that has its own name again is no result', () => {
  expect(isGivenBack('public.prices', 'public.prices')).toBe(true)
  expect(isGivenBack('attic.prices', 'public.prices')).toBe(true)
  expect(isGivenBack('public.polar_flashback_7', 'public.prices')).toBe(false)
})

test('a second result of one table gets a name of its own', () => {
  expect(freeResultName(7, 'public', [])).toBeNull()
  expect(freeResultName(7, 'public', ['other.polar_flashback_7'])).toBeNull()
  expect(freeResultName(7, 'public', ['public.polar_flashback_7'])).toBe('polar_flashback_7_2')
  expect(freeResultName(7, 'public', ['public.polar_flashback_7', 'public.polar_flashback_7_2'])).toBe(
    'polar_flashback_7_3',
  )
})
