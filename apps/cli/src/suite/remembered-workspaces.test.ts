import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { decisiveFor } from './remembered-workspaces'
import { workspaces } from './workspaces'

const checkout = resolve(import.meta.dirname, '../../../..')
beforeAll(() => {
  vi.stubEnv('FLOE_CHECKOUT', checkout)
})
afterAll(() => {
  vi.unstubAllEnvs()
})

const decisive = (name: string) => {
  const all = workspaces()
  const workspace = all.find((w) => w.name === name)
  if (!workspace) throw new Error(`there is no workspace "${name}"`)
  return decisiveFor(workspace, all, checkout)
}

test('what a workspace depends on decides its tests, through others too; what it does not, does not', () => {
  const ofController = decisive('@floe/controller')
  expect(ofController).toEqual(
    expect.arrayContaining(['apps/controller', 'apps/agent', 'packages/operations', 'packages/db']),
  )
  // through testkit and the agent's contract
  expect(decisive('@floe/agent')).toEqual(expect.arrayContaining(['packages/domain', 'packages/testkit']))
  for (const name of ['@floe/agent', '@floe/controller'])
    for (const other of ['apps/web', 'e2e', 'docs']) expect(decisive(name)).not.toContain(other)
})

test('every path that decides is there', () => {
  for (const name of ['@floe/agent', '@floe/controller'])
    for (const path of decisive(name)) expect([path, existsSync(join(checkout, path))]).toEqual([path, true])
})

/** Beside the bundle of an installed package; named as seen from its source, where nothing lies. */
const ofPackages = ['apps/floe-package.json']

test.each(['@floe/agent', '@floe/controller'])(
  '%s reads no file of the checkout that does not decide',
  (name) => {
    const paths = decisive(name)
    const rooms = paths.filter((path) => /^(apps|packages)\/[^/]+$/.test(path))
    const outside: string[] = []
    for (const file of rooms.flatMap((room) =>
      globSync(`${room}/{src,test,tools}/**/*.{ts,mjs}`, { cwd: checkout }),
    ))
      for (const [, named] of readFileSync(join(checkout, file), 'utf8').matchAll(
        /import\.meta\.dirname, '(\.\.[^']*)'/g,
      )) {
        const path = relative(checkout, join(checkout, dirname(file), named as string))
        const decides = paths.some((d) => path === d || path.startsWith(`${d}/`))
        if (!decides && !ofPackages.includes(path)) outside.push(`${file}: ${path || '.'}`)
      }
    expect(outside).toEqual([])
    for (const path of ofPackages) expect(existsSync(join(checkout, path))).toBe(false)
  },
)
