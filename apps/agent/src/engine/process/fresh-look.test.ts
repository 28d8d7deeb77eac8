import { expect, test } from 'vitest'
import { freshLook } from './fresh-look'

/** Looks that end when they are told to, and what each of them saw: the world as it was when it began. */
function world() {
  const ends: (() => void)[] = []
  const seen: string[] = []
  let now = 'before'
  const look = freshLook(async () => {
    const saw = now
    await new Promise<void>((resolve) => ends.push(resolve))
    seen.push(saw)
  })
  return { look, ends, seen, become: (what: string) => (now = what) }
}

test('a question is never answered by a look that began before it', async () => {
  const { look, ends, seen, become } = world()
  const first = look()
  become('after')
  const second = look()
  const third = look()
  ends[0]?.()
  await first
  await Promise.resolve()
  expect(seen).toEqual(['before'])
  await expect.poll(() => ends.length).toBe(2)
  ends[1]?.()
  await Promise.all([second, third])
  // who asked meanwhile shares one look
  expect(seen).toEqual(['before', 'after'])
})

test('one that fails is told to those who asked for it, and the next looks again', async () => {
  let looks = 0
  const look = freshLook(async () => {
    looks++
    await Promise.resolve()
    if (looks === 1) throw new Error('unreadable')
  })
  const first = look()
  const second = look()
  await expect(first).rejects.toThrow('unreadable')
  await second
  await look()
  expect(looks).toBe(3)
})
