import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { holdLock } from './lock'

test('who comes second says so, and goes on when the first has released it', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'floe-lock-'))
  try {
    const file = join(directory, 'lock')
    const events: string[] = []
    const first = await holdLock(file, () => events.push('the first waits'), 'busy')
    let waits: () => void = () => {}
    const waiting = new Promise<void>((resolve) => {
      waits = resolve
    })
    const second = holdLock(file, waits, 'busy').then((lock) => {
      events.push('the second goes on')
      return lock
    })
    await waiting
    events.push('the first releases')
    await first.release()
    await (await second).release()
    expect(events).toEqual(['the first releases', 'the second goes on'])
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
})
