import {
  changedLimits,
  formatLimit,
  type InstanceLimits,
  type LimitChanges,
  type LimitName,
  limitChangeWords,
  limitDriverTitles,
  limitHint,
  limitNames,
  limitRecord,
  limitSumWords,
  memoryKillWords,
  parseLimit,
  unlimitedWriteBackWords,
} from '@floe/domain'
import type { RouterOutputs } from '@floe/web/api'
import type { Command } from 'commander'
import { submitOnce } from '../console/submit-once'
import { waitForOperation } from '../console/wait-for-operation'
import { moment, printResult, table } from '../output'
import { findInstance, openConsole } from './find-instance'
import { type Submitting, submittingVerb } from './verb'

type Limits = RouterOutputs['instance']['limits']

/** commander's name of an option. */
const optionKey = (name: LimitName) =>
  limitRecord(name).option.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())

/** An option for every limit. */
export function limitOptions(command: Command): Command {
  for (const name of limitNames) {
    const { option, title, unit } = limitRecord(name)
    command.option(
      `--${option} <limit>`,
      `${title.toLowerCase().replace('cpu', 'CPU').replace('wal', 'WAL')}, in ${unit}`,
    )
  }
  return command
}

/** The limits among the options of a command; throws for one that is no value. */
export function limitsAsked(options: object): LimitChanges {
  const given = options as Record<string, string | undefined>
  return Object.fromEntries(
    limitNames.flatMap((name) => {
      const text = given[optionKey(name)]
      return text === undefined ? [] : [[name, parseLimit(name, text)]]
    }),
  )
}

export function formatLimits({ limits, observed, host, sums, history }: Limits): string {
  const set = limitNames.filter((name) => limits[name] !== null)
  const inForce = (of: InstanceLimits | null | undefined, name: LimitName) =>
    of ? formatLimit(name, of[name]) : 'unknown'
  const lines = [
    set.length === 0
      ? 'No limits are set: the instance may use all of its host.'
      : table(
          ['limit', 'set', 'in force'],
          set.map((name) => [
            limitRecord(name).title,
            formatLimit(name, limits[name]),
            inForce(observed?.inForce, name),
          ]),
        ),
    '',
    `limited by    ${observed === null ? 'unknown' : observed.driver ? limitDriverTitles[observed.driver] : 'nothing'}`,
  ]
  if (observed?.whyNot)
    lines.push(
      `cannot        ${[observed.whyNot.message, observed.whyNot.detail, observed.whyNot.hint].filter(Boolean).join('. ')}`,
    )
  for (const why of new Set(observed?.gaps.map((gap) => gap.why))) lines.push(`note          ${why}`)
  const writeBack = observed && unlimitedWriteBackWords(observed)
  if (writeBack) lines.push(`write-back    ${writeBack}`)
  if (observed?.memoryNearLimit)
    lines.push('memory        near the limit: at the maximum the kernel kills a process of the instance')
  if (observed?.outOfMemoryKills)
    lines.push(
      `killed        ${observed.outOfMemoryKills} of its processes by the kernel for want of memory, since it was started`,
    )
  if (observed?.lastMemoryKill)
    lines.push(
      `last kill     ${moment(observed.lastMemoryKill.at)}: ${memoryKillWords(observed.lastMemoryKill)}`,
    )
  if (observed && observed.exempt.length > 0)
    lines.push(`exempt        of limits of I/O: ${observed.exempt.join(', ')}`)
  for (const sum of sums)
    lines.push(
      `${sum.resource.padEnd(13)} of all instances on host ${host?.name}: ${limitSumWords(sum)}${sum.over ? ' (over-committed)' : ''}`,
    )
  if (history.length > 0)
    lines.push(
      '',
      table(
        ['when', 'by', 'why', 'changed'],
        history.map((h) => [
          moment(h.at),
          h.actorName,
          h.reason ?? ' ',
          changedLimits(h.before, h.after).map(limitChangeWords).join('; '),
        ]),
      ),
    )
  return lines.join('\n')
}

export function addLimit(instance: Command): void {
  limitOptions(
    submittingVerb(
      instance,
      'limit <name>',
      'show or change how much of its host an instance may use',
      `Changes limits of an instance, which hold at once, without a restart, and for every start. Without an option, shows the limits, what is in force, and their history. ${limitHint('memoryMax')}`,
    ),
  )
    .option('--reason <text>', 'why, for the history')
    .option('--no-wait', 'do not wait until the limits are set')
    .action(async (name: string, options: Submitting & { reason?: string }) => {
      const changes = limitsAsked(options)
      const client = openConsole()
      const { instanceId } = await findInstance(client, name)
      if (Object.keys(changes).length > 0) {
        const { reason } = options
        const { operationId } = await submitOnce(options.idempotencyKey, (idempotencyKey) =>
          client.trpc.instance.limit.mutate({ instanceId, changes, reason, idempotencyKey }),
        )
        if (!options.wait)
          return printResult(options.json, { operationId }, () => `Operation ${operationId} was started.`)
        await waitForOperation(client, operationId)
      }
      const told = await client.trpc.instance.limits.query({ instanceId })
      printResult(options.json, told, () => formatLimits(told))
    })
}
