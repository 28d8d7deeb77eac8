import type { AgentHandlers } from '@floe/agent-contract'
import type pg from 'pg'
import { inDatabase } from '../engine/flashback/database-session'
import { engineFault } from '../engine/flashback/engine-fault'
import {
  readFlashbackLog,
  readFlashbackPoints,
  sampleFlashbackPages,
} from '../engine/flashback/flashback-log'
import type { Flashbacks } from '../engine/flashback/flashbacks'
import { listLost } from '../engine/flashback/lost'
import { listResults } from '../engine/flashback/results'
import { chooseDatabase, listDatabases, listTables } from '../engine/flashback/tables'
import type { Instances } from '../engine/instances'

/** A question has 3 s in all. */
const STATEMENT_MS = 2_500

type Handlers = Pick<AgentHandlers, Extract<keyof AgentHandlers, `${string}Flashback${string}`>>

export function flashbackHandlers(instances: Instances, flashbacks: Flashbacks): Handlers {
  const asked = async <T>(
    { instanceId, database }: { instanceId: string; database: string },
    run: (client: pg.Client) => Promise<T>,
  ): Promise<T> => {
    try {
      return await inDatabase(instances.get(instanceId).address, database, run, STATEMENT_MS)
    } catch (error) {
      throw engineFault(error)
    }
  }
  const logOf = (instanceId: string, { points = false, sample = false } = {}) =>
    instances.get(instanceId).connect(async (client) => {
      const ask = async (sql: string) => (await client.query(sql)).rows
      return {
        log: await readFlashbackLog(ask),
        points: points ? await readFlashbackPoints(ask) : [],
        sample: sample ? await sampleFlashbackPages(ask) : null,
        observedAt: Date.now(),
      }
    })
  return {
    readFlashback: ({ instanceId, sample }) => logOf(instanceId, { points: true, sample }),
    async listFlashbackTables({ instanceId, database: wanted, search, limit }) {
      const databases = await instances.get(instanceId).connect(listDatabases)
      const database = chooseDatabase(databases, wanted)
      const lastChange = flashbacks.activity.lastChange(instanceId, database)
      const found = await asked({ instanceId, database }, (client) =>
        listTables(client, { search, limit }, lastChange),
      )
      return { databases, database, ...found }
    },
    readFlashbackActivity: async (input) => {
      const { log } = await logOf(input.instanceId)
      const windowFrom = log?.oldestAt ?? null
      return asked(input, (client) => flashbacks.activity.read(client, { ...input, windowFrom }))
    },
    listFlashbackLost: async (input) => ({
      lost: await asked(input, (client) => listLost(client, input.database)),
    }),
    listFlashbackResults: async (input) => ({
      results: (await asked(input, listResults)).map(({ schema, name, ...result }) => result),
    }),
    async readFlashbackRows({ operationId }) {
      const { columns, keyColumns, samples, conflictExample } = flashbacks.rows.get(operationId)
      return {
        columns,
        keyColumns,
        samples: samples.map(({ kind, rowThen, rowNow }) => ({ kind, rowThen, rowNow })),
        conflictExample,
      }
    },
    readFlashbackDownload: (input) => flashbacks.downloads.read(input),
  }
}
