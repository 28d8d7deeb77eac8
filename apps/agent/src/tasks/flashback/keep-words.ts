import { engineWords } from '../../engine/flashback/engine-fault'
import type { TaskContext } from '../runner/task'

type Of = { instanceId: string; database: string }

/** What the engine says, with whatever values of rows it has: kept in memory for those who may see rows. */
export function keepWords({ instanceId, database }: Of, context: TaskContext, words: string): void {
  const kept = words.slice(0, 2_000)
  context.flashbacks.rows.put(context.operationId, {
    instanceId,
    database,
    relation: 0,
    columns: [],
    keyColumns: null,
    samples: [],
    conflictExample: kept,
    bytes: 2 * kept.length,
  })
}

/** Runs a flashback; the fault of one that fails is stored and has no values of rows, so the engine's own words are kept. */
export async function keepingWords<T>(of: Of, context: TaskContext, run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    const words = engineWords(error)
    if (words !== null) keepWords(of, context, words)
    throw error
  }
}
