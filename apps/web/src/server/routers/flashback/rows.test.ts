import { randomUUID } from 'node:crypto'
import { insertTestInstance } from '@floe/db/testing'
import { FaultError, fault, type OperationKind } from '@floe/domain'
import { submitOperation } from '@floe/operations/submit'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { downloadFlashback } from '../../download-flashback'
import type { Ports } from '../../ports'
import { type ThrowawayConsole, throwawayConsole } from '../../testing/throwaway-console'

let it: ThrowawayConsole
let instanceId: string
beforeAll(async () => {
  it = await throwawayConsole({ engine: inject('engineConnectionString') })
  instanceId = (await insertTestInstance(it.database, { name: 'demo' })).instanceId
})
afterAll(() => it.close())

/** Stands in every row, and nowhere else. */
const SECRET = 'Ada’s diagnosis'
const rows = {
  columns: ['id', 'v'],
  keyColumns: ['id'],
  samples: [{ kind: 'removed' as const, rowThen: ['1', SECRET], rowNow: null }],
  conflictExample: `Key (v)=(${SECRET}) already exists.`,
}

type Asked = { operationId: string; download: string; piece: number; end: boolean }
/** An agent that has those rows, and `pieces` of a CSV with them; it counts what it was asked. */
function agentsWith(pieces: string[]) {
  const asked: Asked[] = []
  const flashback = {
    rows: { query: async () => rows },
    readDownload: {
      query: async (input: Asked) => {
        asked.push(input)
        const text = pieces[input.piece] ?? ''
        if (text === 'broken')
          throw new FaultError({ code: 'flashback.refused', message: 'the engine refused it' })
        return { text, next: input.piece + 1 < pieces.length ? input.piece + 1 : null }
      },
    },
  }
  const probe = async (_id: string, ask: (trpc: unknown) => Promise<unknown>) => ask({ flashback })
  return { asked, agents: { probe } as unknown as Ports['agents'] }
}

const inputs: Partial<Record<OperationKind, object>> = {
  'preview-flashback': { table: 16_400, tableName: 'public.account', at: '2026-11-23T23:40:00Z' },
  'export-flashback': { result: 16_500, resultName: 'public.polar_flashback_16400' },
  'swap-flashback': {
    result: 16_500,
    resultName: 'public.polar_flashback_16400',
    tableName: 'public.account',
    confirmName: 'demo',
  },
  'prepare-flashback': {},
}
/** An operation that has succeeded. */
async function succeeded(kind: OperationKind): Promise<string> {
  const { operationId } = await submitOperation(it.database, {
    kind,
    input: { instanceId, database: 'shop', ...inputs[kind] } as never,
    actor: { id: 'u', name: 'Ada' },
  })
  await it.database.pool.query(
    `UPDATE operation SET state = 'succeeded', "startedAt" = now(), "endedAt" = now() WHERE id = $1`,
    [operationId],
  )
  return operationId
}
const download = (operationId: string, headers: Record<string, string>, agents: Ports['agents']) =>
  downloadFlashback(
    { ...it.ports, agents },
    new Request(`${it.webUrl}/api/flashback/download?operation=${operationId}`, { headers }),
  )
const audited = async (action: string) =>
  (
    await it.database.pool.query(
      `SELECT outcome, "actorName" AS actor, "objectId", detail FROM audit_event WHERE action = $1 ORDER BY id`,
      [action],
    )
  ).rows

test('an admin sees rows, after an audit row that says who and of which table; nobody below does', async () => {
  const operationId = (await succeeded('preview-flashback')) as never
  const { agents } = agentsWith([])
  const admin = await it.callerOf((await it.signedIn('admin')).headers, { agents })
  expect(await admin.flashback.rows({ operationId })).toEqual(rows)
  for (const role of ['viewer', 'operator'] as const) {
    const caller = await it.callerOf((await it.signedIn(role)).headers, { agents })
    await expect(caller.flashback.rows({ operationId })).rejects.toThrow('may not do this')
  }
  expect(await audited('flashback.read_rows')).toMatchObject([
    {
      outcome: 'allowed',
      actor: 'The admin',
      objectId: instanceId,
      detail: { operationId, database: 'shop', tableName: 'public.account' },
    },
  ])
  expect((await audited('flashback.rows')).map((e) => [e.outcome, e.actor, e.objectId])).toEqual([
    ['denied', 'The viewer', operationId],
    ['denied', 'The operator', operationId],
  ])
  await expect(admin.flashback.rows({ operationId: randomUUID() as never })).rejects.toThrow('has no rows')
})

test('why a swap failed is an admin’s to see, too; an operation without rows has nothing to show', async () => {
  const { agents } = agentsWith([])
  const [admin, operator] = [
    await it.callerOf((await it.signedIn('admin')).headers, { agents }),
    await it.callerOf((await it.signedIn('operator')).headers, { agents }),
  ]
  const operationId = (await succeeded('swap-flashback')) as never
  expect((await admin.flashback.rows({ operationId })).conflictExample).toContain(SECRET)
  await expect(operator.flashback.rows({ operationId })).rejects.toThrow('may not do this')
  const prepared = (await succeeded('prepare-flashback')) as never
  await expect(admin.flashback.rows({ operationId: prepared })).rejects.toThrow('no rows to show')
})

test('a download is sent as it is read, and to an admin only', async () => {
  const operationId = await succeeded('export-flashback')
  const { agents, asked } = agentsWith(['id,v\n', `1,${SECRET}\n`, '', '2,=1+1\n'])
  const { headers } = await it.signedIn('admin')
  const response = await download(operationId, headers, agents)
  expect(response.status).toBe(200)
  expect(Object.fromEntries(response.headers)).toMatchObject({
    'content-type': 'text/csv; charset=utf-8',
    'content-disposition': 'attachment; filename="demo-public.polar_flashback_16400.csv"',
    'cache-control': 'no-store',
  })
  // nobody has read yet: nothing is asked for ahead
  expect(asked).toHaveLength(1)
  expect(await response.text()).toBe(`id,v\n1,${SECRET}\n2,=1+1\n`)
  expect(new Set(asked.map((a) => a.download)).size).toBe(1)
  for (const role of ['viewer', 'operator'] as const) {
    const refused = await download(operationId, (await it.signedIn(role)).headers, agents)
    expect([refused.status, (await refused.json()).fault.code]).toEqual([403, 'session.role_too_low'])
  }
  // a link on another site's page brings the cookie along
  const elsewhere = await download(operationId, { ...headers, 'sec-fetch-site': 'cross-site' }, agents)
  expect([elsewhere.status, (await elsewhere.json()).fault.code]).toEqual([403, 'session.cross_origin'])
  expect((await download(operationId, {}, agents)).status).toBe(401)
  expect((await audited('flashback.download')).map((e) => [e.outcome, e.actor])).toEqual([
    ['allowed', 'The admin'],
    ['denied', 'The viewer'],
    ['denied', 'The operator'],
    ['denied', 'The admin'],
    ['denied', 'anonymous'],
  ])
})

test('one that is given up is closed at the agent; one that breaks does not look whole', async () => {
  const operationId = await succeeded('export-flashback')
  const { headers } = await it.signedIn('admin')
  const given = agentsWith(['a\n', 'b\n', 'c\n'])
  const reader = (await download(operationId, headers, given.agents)).body?.getReader()
  await reader?.read()
  await reader?.cancel()
  await expect.poll(() => given.asked.at(-1)).toMatchObject({ end: true })
  const broken = await download(operationId, headers, agentsWith(['a\n', 'broken']).agents)
  await expect(broken.text()).rejects.toThrow('download failed')
})

test('what the agent refuses is said, and another operation has no download', async () => {
  const { headers } = await it.signedIn('admin')
  const operationId = await succeeded('export-flashback')
  const agents = {
    probe: async () => {
      throw fault('flashback.download_gone', 'the download is no longer open')
    },
  } as unknown as Ports['agents']
  const gone = await download(operationId, headers, agents)
  expect([gone.status, (await gone.json()).fault.code]).toEqual([409, 'flashback.download_gone'])
  const preview = await succeeded('preview-flashback')
  expect((await download(preview, headers, agents)).status).toBe(404)
  expect((await download('nonsense', headers, agents)).status).toBe(400)
})

test('no row that was seen is in the control database', async () => {
  const { rows: tables } = await it.database.pool.query<{ name: string }>(
    `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
      WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`,
  )
  expect(tables.length).toBeGreaterThan(20)
  for (const { name } of tables) {
    const found = await it.database.pool.query(
      `SELECT t::text FROM ${name} t WHERE strpos(t::text, $1) > 0 LIMIT 1`,
      [SECRET],
    )
    expect([name, found.rows]).toEqual([name, []])
  }
})
