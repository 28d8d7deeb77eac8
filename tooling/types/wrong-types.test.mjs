import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { wrongTypes } from './wrong-types.mjs'

const root = realpathSync(mkdtempSync(join(tmpdir(), 'floe-types-')))
afterEach(() => rmSync(root, { recursive: true, force: true }))

/** What is found in workspaces "a" and "b", the latter of which imports the former, with these files besides. */
function found(files, b = {}) {
  const configuration = (more) =>
    JSON.stringify({
      compilerOptions: { strict: true, noEmit: true, types: [], lib: ['ES5'], module: 'ESNext', ...more },
      include: ['src'],
    })
  for (const [file, text] of Object.entries({
    'a/tsconfig.json': configuration({ moduleResolution: 'Bundler' }),
    'b/tsconfig.json': configuration({ moduleResolution: 'Bundler', ...b }),
    'a/src/one.ts': 'export const one: number = 1\n',
    'b/src/two.ts': "import { one } from '../../a/src/one'\nexport const two: number = one\n",
    ...files,
  })) {
    mkdirSync(dirname(join(root, file)), { recursive: true })
    writeFileSync(join(root, file), text)
  }
  return Object.fromEntries(
    [...wrongTypes(root, ['a', 'b'])].map(({ workspace, lines }) => [workspace, lines]),
  )
}

test('right types pass', () => {
  expect(found({})).toEqual({ a: [], b: [] })
})

test('a wrong type is found once, in the workspace that includes its file', () => {
  expect(found({ 'a/src/one.ts': "export const one: number = '1'\n" })).toEqual({
    a: ["a/src/one.ts(1,14): error TS2322: Type 'string' is not assignable to type 'number'."],
    b: [],
  })
})

test('what another workspace gives is checked against what is made of it', () => {
  expect(found({ 'a/src/one.ts': "export const one: string = '1'\n" })).toEqual({
    a: [],
    b: ["b/src/two.ts(2,14): error TS2322: Type 'string' is not assignable to type 'number'."],
  })
})

test('a file that no workspace includes is checked where it is imported', () => {
  const { a, b } = found({
    'a/other/three.ts': "export const three: number = '3'\n",
    'b/src/four.ts': "export { three } from '../../a/other/three'\n",
  })
  expect(a).toEqual([])
  expect(b).toEqual([expect.stringMatching(/^a\/other\/three\.ts\(1,14\): error TS2322: /)])
})

test('each workspace has its own options, also for a file that another one has read before', () => {
  const { a, b } = found(
    {
      'a/other/made.ts': 'export const made: Promise<number> = Promise.resolve(1)\n',
      'a/src/four.ts': "export { made } from '../other/made'\n",
      'b/src/five.ts': "export { made } from '../../a/other/made'\n",
    },
    { lib: ['ES2024'] },
  )
  expect(a).toEqual([expect.stringMatching(/^a\/other\/made\.ts\(1,38\): error TS2585: /)])
  expect(b).toEqual([])
})

test('an expected error that is none, an unknown option, and what is no TypeScript are found', () => {
  const fine = 'b/src/fine.ts'
  expect(found({ [fine]: '// @ts-expect-error\nexport const fine = 1\n' }).b).toEqual([
    expect.stringMatching(/^b\/src\/fine\.ts\(1,1\): error TS2578: /),
  ])
  expect(found({ [fine]: 'export const = 1\n' }).b).toContainEqual(expect.stringContaining('error TS1134: '))
  expect(found({ [fine]: '' }, { strictly: true }).b).toEqual([
    expect.stringMatching(/^b\/tsconfig\.json\(.*\): error TS5025: /),
  ])
})
