import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { testEnginePrefix } from '@floe/testkit'
import { expect, test } from 'vitest'
import type { AgentInstallation } from '../installation'
import { helloOf } from './hello'

const contract = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../../../packages/agent-contract/golden/contract.json'), 'utf8'),
)

function capabilities(enginePrefix: string): string[] {
  const installation = { hostId: randomUUID(), hostName: 'h', enginePrefix } as unknown as AgentInstallation
  return helloOf(installation, { fingerprint: '', notBefore: 0, notAfter: 0 }, 'b', 0).capabilities
}
const named = (all: string[], noun: string) =>
  all.filter((word) => word.startsWith(`${noun}.`)).map((word) => word.slice(noun.length + 1))

test('every procedure and every task of the contract is named', () => {
  const said = capabilities(testEnginePrefix())
  expect(said).toEqual(expect.arrayContaining(Object.keys(contract.procedures)))
  expect(said).toEqual(
    expect.arrayContaining(Object.keys(contract.taskResults).map((kind) => `task.${kind}`)),
  )
  expect(new Set(said).size).toBe(said.length)
})

test('the modules of the engine are those it was built to load, and a plain one has none', () => {
  const preload = readFileSync(join(import.meta.dirname, '../../../../engine/modules/preload'), 'utf8')
  const built = preload.split('\n').filter((line) => line && !line.startsWith('#'))
  expect(named(capabilities(testEnginePrefix()), 'engine')).toEqual(built)
  expect(named(capabilities('/nowhere'), 'engine')).toEqual([])
})
