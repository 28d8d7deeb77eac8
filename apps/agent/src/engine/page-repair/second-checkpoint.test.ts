import { fault } from '@floe/domain'
import { expect, test } from 'vitest'
import { withSecondCheckpoint } from './second-checkpoint'

/** Fails with these, one after another, then succeeds. */
async function tried(...errors: Error[]) {
  const attempts: boolean[] = []
  const said: string[] = []
  const end = await withSecondCheckpoint(
    async (again) => {
      attempts.push(again)
      const error = errors.shift()
      if (error) throw error
      return 'done'
    },
    (text) => said.push(text),
  ).catch((error: Error) => error.message)
  return { end, attempts, lines: said.length }
}
const failed = () => new Error('checkpoint request failed')

test('a checkpoint that failed is tried once more, and no more often', async () => {
  expect(await tried()).toEqual({ end: 'done', attempts: [false], lines: 0 })
  expect(await tried(failed())).toEqual({ end: 'done', attempts: [false, true], lines: 1 })
  expect(await tried(failed(), failed())).toMatchObject({
    end: 'checkpoint request failed',
    attempts: [false, true],
  })
})

test('so is a copy that ended with the words of its server; anything else that fails is not', async () => {
  const copy = fault('standby.not_copied', 'could not copy from 10.0.0.1:5501', {
    detail: 'could not initiate base backup: ERROR:  checkpoint request failed',
  })
  expect(await tried(copy)).toMatchObject({ end: 'done', attempts: [false, true] })
  expect(await tried(new Error('no space left'))).toMatchObject({ end: 'no space left', attempts: [false] })
})
