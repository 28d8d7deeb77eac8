import { fault } from '@floe/domain'
import type { RouterInputs } from '@floe/web/api'
import type { Command } from 'commander'
import { printResult, table } from '../output'
import { openConsole } from './find-instance'
import { verb } from './verb'

type Verb = { json?: boolean }
type Kind = RouterInputs['retention']['set']['kind']

const units = { h: 3_600, d: 86_400 } as const

/** `6h`, `90d` */
function seconds(text: string): number {
  const match = /^(\d{1,6})([hd])$/.exec(text)
  if (!match)
    throw fault('usage.duration', `"${text}" is not a time`, { hint: 'Write hours or days: 6h, 90d.' })
  return Number(match[1]) * units[match[2] as keyof typeof units]
}

const words = (keep: number) =>
  keep % 86_400 === 0 ? `${keep / 86_400}d` : `${Math.round(keep / 360) / 10}h`

export function addRetention(program: Command): void {
  const retention = program
    .command('retention')
    .summary('how long samples and records are kept')
    .description(
      'How long the control database keeps samples, operations, incidents, sessions and audit rows.',
    )

  verb(retention, 'list', 'list what is kept how long').action(async ({ json }: Verb) => {
    const answer = await openConsole().trpc.retention.list.query()
    printResult(json, answer.retention, () =>
      table(
        ['kind', 'kept', 'what'],
        answer.retention.map((r) => [r.kind, words(r.keepSeconds), r.meaning]),
      ),
    )
  })
  verb(
    retention,
    'set <kind> <time>',
    'change how long a kind is kept',
    'Changes how long a kind is kept, in hours or days: 6h, 90d. Older rows are deleted within minutes. Audit rows are kept at least 90d, and only the owner changes that.',
  ).action(async (kind: string, time: string, { json }: Verb) => {
    const set = await openConsole().trpc.retention.set.mutate({
      kind: kind as Kind,
      keepSeconds: seconds(time),
    })
    printResult(json, set, () => `${set.kind} is kept ${words(set.keepSeconds)}.`)
  })
}
