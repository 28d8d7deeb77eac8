import { renderToStaticMarkup } from 'react-dom/server'
import { expect, test } from 'vitest'
import { ComparisonCounts, comparisonInWords } from './comparison-counts'
import { SampleRows } from './sample-rows'

const columns = ['id', 'note']
const counts = { removed: 2_000, changed: 1, added: 0 }
const rows = [
  { kind: 'removed' as const, rowThen: ['1', null], rowNow: null },
  { kind: 'removed' as const, rowThen: ['2', ''], rowNow: null },
]
const html = (more: object = {}) =>
  renderToStaticMarkup(
    <SampleRows columns={columns} keyColumns={['id']} rows={rows} counts={counts} {...more} />,
  )

test('NULL and an empty text are told apart, and a part of the rows is called a part', () => {
  expect(html()).toContain('>NULL<')
  expect(html()).toContain('(empty)')
  expect(html()).toContain('the first 2 of 2,000 rows')
  expect(html({ counts: { ...counts, removed: 2 } })).toContain('all of them')
})

test('what has changed is marked in words, too', () => {
  const changed = [{ kind: 'changed' as const, rowThen: ['1', 'a'], rowNow: ['1', 'b'] }]
  expect(html({ rows: changed })).toMatch(/then .*a<\/span>.*now .*b</)
})

test('a row can be selected by its key where there is somebody to take the selection', () => {
  expect(html()).not.toContain('Select id 1')
  expect(html({ selected: new Set(), onSelect: () => undefined })).toContain('aria-label="Select id 1"')
})

test('a comparison without a key does not count changed rows as such', () => {
  const compared = { rowsThen: 3, rowsNow: 3, same: 2, added: 1, removed: 1, changed: 0, keyColumns: null }
  const drawn = renderToStaticMarkup(<ComparisonCounts comparison={compared} then={null} at={0} on="shop" />)
  expect(drawn).not.toContain('Changed since')
  expect(drawn).toContain('no key that names a row')
  expect(comparisonInWords(compared)).toBe('Since then: 1 row removed, 1 row added.')
  expect(comparisonInWords({ ...compared, added: 0, removed: 0 })).toBe('The table has the same rows now.')
})
