import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { isDeadOwner, makeOwner, processStart } from './owner'

test('an owner is dead when its process is gone, also when another has its number now', async () => {
  const child = spawn('sleep', ['60'])
  const start = processStart(child.pid as number)
  const owner = `h/${child.pid}/${start}/1`
  expect(isDeadOwner(owner, 'h')).toBe(false)
  expect(isDeadOwner(`h/${child.pid}/${Number(start) - 1}/1`, 'h')).toBe(true)
  const gone = once(child, 'exit')
  child.kill('SIGKILL')
  await gone
  expect(isDeadOwner(owner, 'h')).toBe(true)
})

test('of another machine’s owners nothing is assumed, and the own one is alive', () => {
  expect(isDeadOwner('elsewhere/1/1/1', 'h')).toBe(false)
  expect(isDeadOwner('nonsense', 'h')).toBe(false)
  expect(isDeadOwner(makeOwner('h'), 'h')).toBe(false)
  expect(makeOwner('h')).not.toBe(makeOwner('h'))
})
