import { type FlashbackLog, flashbackWords, formatBytes, formatDuration } from '@floe/domain'
import type { Command } from 'commander'
import { moment, printResult } from '../output'
import { findInstance, openConsole } from './find-instance'
import { addFlashbackOfTables } from './flashback-table'
import { addRestoreTable } from './restore-table'
import { verb } from './verb'

type Verb = { json?: boolean }

function formatLog(log: FlashbackLog, now: number): string {
  const { limits } = log
  return [
    `state         ${flashbackWords(log).title}${log.mode === null ? '' : ` (${log.mode})`}`,
    `oldest        ${log.oldestAt === null ? '–' : `${moment(log.oldestAt)} (${formatDuration(now - log.oldestAt)} back)`}`,
    ...(log.newestAt == null
      ? []
      : [`newest        ${moment(log.newestAt)} (just before the last replayed commit)`]),
    `points        ${log.points}`,
    `size          ${formatBytes(log.sizeBytes)}${limits.maxBytes === null ? '' : ` of at most ${formatBytes(limits.maxBytes)}`}`,
    `growth        ${log.bytesPerSecond === null ? '–' : `${formatBytes(log.bytesPerSecond * 3_600)}/h between the last two points`}`,
    `kept          ${limits.recoveryArea ? `${limits.rotationMs / 60_000} min, with its WAL` : `${formatBytes(limits.keepBytes)}, as long as its WAL is there`}`,
    `last ended    ${log.lastEndedAt === null ? '–' : `${moment(log.lastEndedAt)}: ${log.lastEndReason ?? 'the engine gives no reason'}`}`,
    ...(log.shortened
      ? [
          `shortened     ${moment(log.shortened.lastAt)}: ${log.shortened.reason ?? 'the engine gives no reason'} (${log.shortened.times} times since the start)`,
        ]
      : []),
  ].join('\n')
}

export function addFlashback(program: Command): void {
  const flashback = program
    .command('flashback')
    .summary('tables as they were at an earlier moment')
    .description(
      'Flashback: tables as they were at an earlier moment, from the flashback log of an instance.',
    )
  verb(
    flashback,
    'show <name>',
    'show the window of an instance’s flashback log',
    'Queries the instance for the window of its flashback log: any moment in it can be flashed back to. Each member of a cluster has its own.',
  ).action(async (name: string, { json }: Verb) => {
    const client = openConsole()
    const { instanceId } = await findInstance(client, name)
    const seen = await client.trpc.flashback.read.query({ instanceId })
    printResult(json, seen, () =>
      seen.log === null
        ? 'Unknown: its engine has no flashback log, or its database postgres lacks the extension flashback_log.'
        : seen.log.state === 'off'
          ? `The flashback log is off. "./floe setting set ${name} polar_enable_flashback_log=on polar_enable_fast_recovery_area=on" and a restart turn it on.`
          : formatLog(seen.log, seen.observedAt),
    )
  })
  addFlashbackOfTables(flashback)
  addRestoreTable(flashback)
}
