import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { testEnginePrefix } from '@floe/testkit'
import { expect, test } from 'vitest'
import { builtinExtensions, builtinModules } from './builtin-modules'

const modules = join(import.meta.dirname, '../../../../../engine/modules')
const preload = readFileSync(join(modules, 'preload'), 'utf8')
  .split('\n')
  .filter((line) => line && !line.startsWith('#'))

test('an engine has the modules that it was built to load; a plain one has none', () => {
  expect(builtinModules(testEnginePrefix())).toEqual(preload)
  expect(builtinModules('/nowhere')).toEqual([])
})

test('every instance gets the extensions of those with SQL objects', () => {
  const withSql = preload.filter((module) => existsSync(join(modules, module, `${module}.control`)))
  expect(withSql.length).toBeGreaterThan(0)
  expect(builtinExtensions(testEnginePrefix())).toEqual(withSql)
  expect(builtinExtensions('/nowhere')).toEqual([])
})
