import { noLimits } from '@floe/domain'
import { expect, test } from 'vitest'
import { limitTexts, typedLimits } from './typed-limits'

const before = { ...noLimits, cpu: 0.7, memoryMax: 4 * 1024 ** 3 }

test('fields that were left alone change nothing', () => {
  expect(limitTexts(before)).toMatchObject({ cpu: '0.7', memoryMax: '4GB', dataWriteIops: '' })
  expect(typedLimits(limitTexts(before), before)).toEqual({ changes: {}, wrong: new Map() })
})

test('an emptied field takes a limit away, a filled one sets it, a wrong one is told beside it', () => {
  const texts = { ...limitTexts(before), cpu: '', dataWriteIops: '800', walReadBytes: 'fast' }
  const { changes, wrong } = typedLimits(texts, before)
  expect(changes).toEqual({ cpu: null, dataWriteIops: 800 })
  expect([...wrong.keys()]).toEqual(['walReadBytes'])
  expect(wrong.get('walReadBytes')).toContain('invalid value')
})
