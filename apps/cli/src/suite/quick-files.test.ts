import { resolve } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { filesOf, filesToRun, quickChoices } from './quick-files'

const root = resolve(import.meta.dirname, '../../../..')
beforeAll(() => {
  vi.stubEnv('FLOE_CHECKOUT', root)
})
afterAll(() => {
  vi.unstubAllEnvs()
})

test.each(Object.entries(quickChoices))('%s: what a quick run has is there, and is not all', (_, choice) => {
  const files = filesOf(choice, root)
  for (const one of choice.quick)
    expect(
      files.some(({ file }) => (one.endsWith('/') ? file.startsWith(one) : file === one)),
      one,
    ).toBe(true)
  expect(files.some(({ quick }) => !quick)).toBe(true)
})

test('a quick run asks for chosen files and says how many it left out; a complete one, or files that are named, for no choice', () => {
  const left: [string, number, number][] = []
  const leftOut = (...one: [string, number, number]) => left.push(one)
  const of = (all: boolean, more: string[] = []) => filesToRun({ all, more, leftOut }, 'launcher')
  expect(of(true)).toEqual({ more: [], whole: true })
  expect(of(false, ['launcher/boot.test.ts'])).toEqual({ more: ['launcher/boot.test.ts'], whole: false })
  expect(left).toEqual([])
  const { more, whole } = of(false)
  expect({ more, whole }).toEqual({ more: quickChoices.launcher.quick, whole: false })
  const total = filesOf(quickChoices.launcher, root).length
  expect(left).toEqual([['launcher', total - more.length, total]])
})
