import { expect, test } from 'vitest'
import { Turns } from './turns'

/** Work that ends when it is told to. */
function held() {
  let end = () => {}
  const ended = new Promise<void>((resolve) => {
    end = resolve
  })
  return { end, work: () => ended }
}

test('one runs at a time, in order, and whoever comes to a full queue is refused at once', async () => {
  const turns = new Turns(2, () => new Error('full'))
  const seen: number[] = []
  const first = held()
  const all = [
    turns.take(first.work),
    turns.take(async () => void seen.push(2)),
    turns.take(async () => void seen.push(3)),
  ]
  await expect(turns.take(async () => void seen.push(4))).rejects.toThrow('full')
  expect(seen).toEqual([])
  first.end()
  await Promise.all(all)
  expect(seen).toEqual([2, 3])
  await turns.take(async () => void seen.push(5))
  expect(seen).toEqual([2, 3, 5])
})

test('who gives up while waiting makes room, and its work never runs', async () => {
  const turns = new Turns(1, () => new Error('full'))
  const first = held()
  const running = turns.take(first.work)
  const seen: string[] = []
  const caller = new AbortController()
  const given = turns.take(async () => void seen.push('given up'), caller.signal)
  caller.abort(new Error('gone'))
  await expect(given).rejects.toThrow('gone')
  const next = turns.take(async () => void seen.push('next'))
  first.end()
  await Promise.all([running, next])
  expect(seen).toEqual(['next'])
})

test('a failure passes the turn on', async () => {
  const turns = new Turns()
  const failed = turns.take(() => Promise.reject(new Error('no')))
  const next = turns.take(async () => 'yes')
  await expect(failed).rejects.toThrow('no')
  expect(await next).toBe('yes')
})
