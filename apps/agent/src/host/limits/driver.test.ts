import { noLimits } from '@floe/domain'
import { expect, test } from 'vitest'
import { limitsByDevice, setEach } from './driver'

test('a device that refuses leaves no other without its limits, and is told', () => {
  const set: string[] = []
  const refuse = (number: string) => {
    if (number === '7:1') throw new Error('EINVAL')
    set.push(number)
  }
  expect(() => setEach(['254:0', '7:1', '7:2'], refuse)).toThrow('EINVAL')
  expect(set).toEqual(['254:0', '7:2'])
})

test('a tablespace on the device of WAL goes by the limits of WAL', () => {
  const [data, wal] = [
    { number: '254:0', name: 'vda' },
    { number: '7:0', name: 'loop0' },
  ]
  const limits = { ...noLimits, dataWriteIops: 800, walWriteIops: 4_000 }
  const all = limitsByDevice(limits, { data, wal, tablespaces: [wal, { number: '7:1', name: 'loop1' }] })
  expect([...all].map(([number, of]) => [number, of.writeIops])).toEqual([
    ['254:0', 800],
    ['7:0', 4_000],
    ['7:1', 800],
  ])
})
