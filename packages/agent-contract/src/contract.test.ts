import { readFileSync } from 'node:fs'
import { type AgentRight, FaultError, operationKindsThat } from '@floe/domain'
import type { TRPCError } from '@trpc/server'
import { describe, expect, test } from 'vitest'
import { breakingChanges, type ContractDocument, contractDocument } from './contract-document'
import { type AgentHandlers, createAgentRouter } from './router'
import { type TaskKind, taskManner } from './tasks'

const golden = () =>
  JSON.parse(readFileSync(new URL('../golden/contract.json', import.meta.url), 'utf8')) as ContractDocument
const plain = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T

describe('the contract', () => {
  test('is the one in the golden file', () => {
    expect(plain(contractDocument())).toEqual(golden())
  })

  test('takes nothing away from the golden file', () => {
    expect(breakingChanges(golden(), plain(contractDocument()))).toEqual([])
  })

  const altered = (alter: (d: ContractDocument) => void) => {
    const document = golden()
    alter(document)
    return breakingChanges(golden(), document)
  }
  const inputOf = (d: ContractDocument, name: string) =>
    (procedure(d, name).input as { properties: Record<string, Record<string, unknown>> }).properties
  const procedure = (d: ContractDocument, name: string) =>
    d.procedures[name] as NonNullable<(typeof d.procedures)[string]>

  test('a removed procedure counts as breaking', () => {
    expect(
      altered((d) => {
        delete d.procedures.hello
      }),
    ).toEqual(['hello: removed'])
  })

  test('a removed field of an answer counts as breaking', () => {
    const found = altered((d) => {
      delete (procedure(d, 'hello').output.properties as Record<string, unknown>).bootId
    })
    expect(found).toEqual(['hello output.bootId: removed'])
  })

  test('a question that needs more than before counts as breaking, an optional addition does not', () => {
    const found = altered((d) => {
      const input = procedure(d, 'setting.list').input as {
        properties: Record<string, unknown>
        required: string[]
      }
      input.properties.more = { type: 'string' }
    })
    expect(found).toEqual([])
    const required = altered((d) => {
      const input = procedure(d, 'setting.list').input as {
        properties: Record<string, unknown>
        required: string[]
      }
      input.properties.more = { type: 'string' }
      input.required.push('more')
    })
    expect(required).toEqual(['setting.list input.more: now required'])
  })

  test('a removed task kind and a narrowed number count as breaking', () => {
    const removed = altered((d) => {
      ;(inputOf(d, 'task.start').task as { oneOf: unknown[] }).oneOf.shift()
    })
    expect(removed).toEqual(['task.start input.task: alternative create-instance removed'])
    const narrowed = altered((d) => {
      ;(inputOf(d, 'telemetry.read').limit as { maximum: number }).maximum = 10
    })
    expect(narrowed).toEqual(['telemetry.read input.limit: maximum changed from 3600 to 10'])
  })
})

describe('keys', () => {
  const key = { operationId: '00000000-0000-4000-8000-000000000000', step: 's', attempt: 1 }
  const instanceId = '00000000-0000-4000-8000-000000000001'
  const calls: Record<string, unknown> = {
    hello: undefined,
    'report.read': { after: null },
    'task.check': { key },
    'setting.list': { instanceId },
    'setting.check': { instanceId, changes: [{ name: 'work_mem', value: '8MB' }] },
    'commitMode.list': { instanceId },
    'databaseRole.list': { instanceId },
    'sharedServer.read': { instanceId },
    'protection.read': { instanceId },
    'flashback.read': { instanceId },
    'flashback.tables': { instanceId, database: null },
    'flashback.activity': { instanceId, database: 'shop', table: null },
    'flashback.lost': { instanceId, database: 'shop' },
    'flashback.results': { instanceId, database: 'shop' },
    'flashback.rows': { operationId: key.operationId },
    'flashback.readDownload': { operationId: key.operationId, download: key.operationId, piece: 0 },
    'telemetry.read': { instanceId, afterSeq: -1 },
    'checkpoint.read': { instanceId, afterSeq: 0 },
    'task.start': { key, task: { kind: 'start-instance', instanceId } },
    'task.cancel': key,
    'keptAside.list': { instanceId },
    'keptAside.read': {
      instanceId,
      name: 'kept-aside-20260101T000000000Z-1',
      from: null,
      transactionsOnly: true,
    },
    'certificate.request': undefined,
    'certificate.install': { certificate: 'PEM' },
  }
  /** Which fault a call with this right ends in; handlers all throw `reached`. */
  const outcome = async (name: string, right: AgentRight | null): Promise<string> => {
    const reached = new Proxy({} as AgentHandlers, {
      get: () => async () => {
        throw new FaultError({ code: 'reached', message: 'reached' })
      },
    })
    const caller = createAgentRouter(reached).createCaller({ right })
    let call: unknown = caller
    for (const part of name.split('.')) call = (call as Record<string, unknown>)[part]
    try {
      await (call as (input: unknown) => Promise<unknown>)(calls[name])
      return 'answered'
    } catch (error) {
      const { cause } = error as TRPCError
      return cause instanceof FaultError ? cause.fault.code : String(error)
    }
  }

  test('every procedure is covered here', () => {
    expect(Object.keys(calls).sort()).toEqual(
      Object.keys(contractDocument().procedures)
        .filter((n) => n !== 'telemetry.stream')
        .sort(),
    )
  })

  test('without a certificate nothing is reached', async () => {
    for (const name of Object.keys(calls))
      expect([name, await outcome(name, null)]).toEqual([name, 'agent.no_certificate'])
  })

  test('a certificate that may read reaches no mutation, and nothing that starts an engine', async () => {
    const { procedures } = contractDocument()
    for (const name of Object.keys(calls)) {
      const acts = procedures[name]?.type === 'mutation' || name === 'setting.check'
      const expected = acts ? 'agent.read_only' : 'reached'
      expect([name, await outcome(name, 'read')]).toEqual([name, expected])
    }
  })

  test('a certificate that may start tasks reaches everything', async () => {
    for (const name of Object.keys(calls))
      expect([name, await outcome(name, 'task')]).toEqual([name, 'reached'])
  })
})

test('an operation that changes nothing is carried out by a task that holds up no other', () => {
  const reading = operationKindsThat(({ readsOnly }) => readsOnly === true)
  expect(reading).toContain('preview-flashback')
  for (const kind of reading) expect(taskManner(kind as TaskKind).besideOthers, kind).toBe(true)
})
