import { join } from 'node:path'
import { fault } from '@floe/domain'
import { refuseAwake, TORN_LIST, toldTornList } from '../../engine/copies/torn-list'
import { endProcesses } from '../../engine/process/end-processes'
import { removeBelow } from '../../host/tree'
import type { TaskBody } from '../runner/task'

/** It reads the WAL since the last checkpoint, and each page that WAL names. */
const LIST_BOUND_MS = 3_600_000

/**
 * Has the engine list its torn pages: a start that ends on its own before it has changed anything. What a killed agent left
 * of one is ended first.
 */
export const listTorn: TaskBody<'list-torn'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  const { dataDirectory } = instance.layout
  const { name, expected } = instance.registered
  if (context.resumed && expected === 'stopped') await endProcesses(instance, ENDED, context)
  refuseAwake(instance)
  // one of an earlier crash says nothing
  await removeBelow(join(dataDirectory, TORN_LIST), instance.user)
  context.log('its engine reads the WAL and lists torn pages')
  let said: string
  try {
    const run = await instance.runToEnd(
      { polar_page_repair_list_only: 'on' },
      { timeoutMs: LIST_BOUND_MS, signal: context.signal },
    )
    said = run.stderr
  } finally {
    await endProcesses(instance, ENDED, context)
    // the report says so before the task does
    await instance.look()
  }
  context.signal.throwIfAborted()
  const list = toldTornList(dataDirectory)
  if (list) {
    context.log(`torn pages: ${list.blocks.toLocaleString('en-US')}; its WAL reaches ${list.end}`)
    return { list, why: null }
  }
  const words = lastWords(said)
  if (/there are no torn pages to be listed/.test(said)) return { list: null, why: words }
  throw fault('recover.not_listed', `the torn pages of instance "${name}" could not be listed`, {
    detail: words || 'Its engine left no word.',
    hint: /unrecognized configuration parameter/.test(said)
      ? 'Its engine has no page repair of this version: run "./floe up" on its host, and keep page_repair in shared_preload_libraries.'
      : `What its engine says in the log in "${instance.layout.logDirectory}" has to be fixed first.`,
  })
}

const ENDED = { graceMs: 0, everything: false }

/** What an engine that ended said last: of an error its lines, without the prefix. */
function lastWords(said: string): string {
  const lines = said.split('\n').flatMap((line) => {
    const [, level, words] = /\b(FATAL|PANIC|DETAIL):\s+(.*)$/.exec(line) ?? []
    return level && words ? [words] : []
  })
  return lines.slice(0, 4).join('. ').slice(0, 1_000)
}
