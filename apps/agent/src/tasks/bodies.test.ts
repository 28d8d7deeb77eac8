import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'
import { taskBodies } from './bodies'

const sources = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' }).filter(
  (file) => file.endsWith('.ts') && !file.endsWith('.test.ts'),
)
const kinds = new Set(Object.keys(taskBodies))
const isBody = (file: string) => kinds.has(basename(file, '.ts'))

test('every kind of task has one file, named for it', () => {
  const named = sources.filter(isBody).map((file) => basename(file, '.ts'))
  expect(named.sort()).toEqual([...kinds].sort())
  for (const file of sources.filter(isBody)) {
    const kind = basename(file, '.ts')
    const source = readFileSync(join(import.meta.dirname, file), 'utf8')
    const declared = [...source.matchAll(/TaskBody<'([a-z-]+)'>/g)].map((m) => m[1])
    expect(declared, file).toEqual([kind])
  }
})

test('no body imports another one: what two of them do stands in a file of its own', () => {
  const imported = sources
    .filter((file) => file !== 'bodies.ts')
    .flatMap((file) => {
      const source = readFileSync(join(import.meta.dirname, file), 'utf8')
      return [...source.matchAll(/from '(\.[^']*)'/g)]
        .filter(([, from]) => !(from as string).includes('/engine/') && isBody(from as string))
        .map(([, from]) => `${file} → ${from}`)
    })
  expect(imported).toEqual([])
})
