import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const directory = import.meta.dirname
const cli = createRequire(import.meta.url).resolve('@informalsystems/quint/dist/src/cli.js')
const long = process.env.FLOE_TEST_LONG === '1'
const source = (name) => readFileSync(join(directory, name), 'utf8')
const namesIn = (text, pattern) => [...new Set([...text.matchAll(pattern)].map(([, name]) => name))].sort()

/** Type-checks the file, then tests or runs it. The other backend would be fetched from elsewhere. */
function quint(verb, file, ...args) {
  const command = [cli, verb, file, '--backend=typescript', '--seed=1', ...args]
  const env = { ...process.env, NO_COLOR: '1', FORCE_COLOR: '0' }
  return new Promise((resolve) =>
    execFile(
      process.execPath,
      command,
      { cwd: directory, env, maxBuffer: 2 ** 28 },
      (error, stdout, stderr) => resolve({ failed: error !== null, output: stdout + stderr }),
    ),
  )
}

test('every rule is needed: broken it violates an invariant, kept it does not', {
  timeout: 300_000,
}, async () => {
  const { failed, output } = await quint('test', 'situations.qnt', '--max-samples=1', '--verbosity=3')
  expect(failed, output).toBe(false)
  const passed = namesIn(output, /ok (\w+)Test passed/g)
  expect(passed).toEqual(namesIn(source('situations.qnt'), /\brun (\w+)Test\b/g))
  const rules = namesIn(source('protocol.qnt'), /\bbroken [!=]= "(\w+)"/g)
  expect(rules.length).toBeGreaterThan(0)
  expect(passed).toEqual(expect.arrayContaining(rules))
})

test('random events violate no invariant', { timeout: long ? 3_600_000 : 300_000 }, async () => {
  const witnesses = namesIn(source('simulation.qnt'), /^ {2}val seen(\w+) =/gm).map((name) => `seen${name}`)
  const { failed, output } = await quint(
    'run',
    'simulation.qnt',
    '--invariant=safe',
    `--max-samples=${long ? 2000 : 80}`,
    '--max-steps=80',
    '--verbosity=1',
    '--witnesses',
    ...witnesses,
  )
  expect(failed, output).toBe(false)
  expect(output).toContain('No violation found')
  // runs that come to nothing would violate nothing either
  expect(namesIn(output, /^(\w+) was witnessed in [1-9]/gm), output).toEqual(witnesses)
})
