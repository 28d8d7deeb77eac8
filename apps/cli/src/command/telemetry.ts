import { fault } from '@floe/domain'
import type { RouterInputs } from '@floe/web/api'
import type { Command } from 'commander'
import { consoleFault } from '../console/client'
import { duration, moment, printResult, table } from '../output'
import { findInstance, openConsole } from './find-instance'
import { verb, wholeNumber } from './verb'

type Verb = { json?: boolean }
type MetricName = RouterInputs['telemetry']['history']['metrics'][number]

/** What a person sees; --json has everything. */
const columns = [
  ['tps', 'tps'],
  ['xact_active_time', 'ms/tx'],
  ['wal_bytes', 'wal B/s'],
  ['wal_fpi_bytes', 'fpi B/s'],
  ['io_read_bytes', 'read B/s'],
  ['io_write_bytes', 'write B/s'],
  ['io_extend_bytes', 'extend B/s'],
  ['connections_active', 'active'],
  ['connections_total', 'conns'],
  ['process_cpu', 'cpu'],
] as const satisfies readonly (readonly [MetricName, string])[]

const defaultMetrics = columns.map(([name]) => name)

function cell(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–'
  return Math.abs(value) >= 100 || Number.isInteger(value) ? Math.round(value).toString() : value.toFixed(2)
}

const row = (at: number, values: Partial<Record<string, number | null>>) =>
  [
    moment(at).slice(11).padEnd(8),
    ...columns.map(([name, title]) => cell(values[name]).padStart(Math.max(10, title.length))),
  ].join(' ')
const heading = () =>
  ['time'.padEnd(8), ...columns.map(([, title]) => title.padStart(Math.max(10, title.length)))].join(' ')

const SILENCE_MS = 30_000

/** Follows the samples of an instance, one line each, until stopped or until `seconds` of measured time have passed. */
async function tail(name: string, options: Verb & { seconds?: number }): Promise<void> {
  const client = openConsole()
  const { instanceId } = await findInstance(client, name)
  if (!options.json) process.stdout.write(`${heading()}\n`)
  await new Promise<void>((resolve, reject) => {
    let covered = 0
    let silence: NodeJS.Timeout
    const end = (settle: () => void) => {
      clearTimeout(silence)
      subscription.unsubscribe()
      settle()
    }
    const listen = () => {
      clearTimeout(silence)
      silence = setTimeout(
        () =>
          end(() =>
            reject(
              fault('telemetry.silent', `no sample of instance "${name}" came for ${SILENCE_MS / 1000} s`, {
                hint: `Check whether it runs: "./floe instance show ${name}".`,
              }),
            ),
          ),
        SILENCE_MS,
      )
    }
    const subscription = client.trpc.telemetry.stream.subscribe(
      { instances: [{ instanceId, afterSeq: null }] },
      {
        onData: (message) => {
          // a tracked event is {id, data}
          const event = 'data' in message ? message.data : message
          if (event.type !== 'samples') return
          listen()
          for (const { instanceId: _, ...sample } of event.samples) {
            process.stdout.write(`${options.json ? JSON.stringify(sample) : row(sample.at, sample.values)}\n`)
            covered += sample.intervalMs
            if (options.seconds !== undefined && covered >= options.seconds * 1_000 - 500) return end(resolve)
          }
        },
        onError: (error) => end(() => reject(consoleFault(error))),
        onComplete: () => end(resolve),
      },
    )
    listen()
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => end(resolve))
  })
}

async function history(
  name: string,
  options: Verb & { minutes: number; metrics?: string[]; points: number },
): Promise<void> {
  const client = openConsole()
  const { instanceId } = await findInstance(client, name)
  const metrics = (options.metrics ?? defaultMetrics) as MetricName[]
  const answer = await client.trpc.telemetry.history.query({
    instanceId,
    minutes: options.minutes,
    metrics,
    maxPoints: options.points,
  })
  const points = answer.points.map(({ seq, at, intervalMs, average }) => ({
    seq,
    at,
    intervalMs,
    values: Object.fromEntries(metrics.map((name, i) => [name, average[i] ?? null])),
  }))
  if (options.json) for (const point of points) process.stdout.write(`${JSON.stringify(point)}\n`)
  else {
    const lines = points.map((p) => [moment(p.at), ...metrics.map((m) => cell(p.values[m]))])
    process.stdout.write(
      points.length === 0
        ? 'No samples are stored for this time.\n'
        : `${table(['time', ...metrics], lines)}\n`,
    )
  }
}

async function checkpoints(name: string, { json, limit }: Verb & { limit: number }): Promise<void> {
  const client = openConsole()
  const { instanceId } = await findInstance(client, name)
  const answer = await client.trpc.checkpoint.list.query({ instanceId, limit })
  printResult(json, answer.checkpoints, () =>
    answer.checkpoints.length === 0
      ? 'No checkpoint is known.'
      : table(
          [
            'completed',
            'reason',
            'buffers',
            '%',
            'write',
            'sync',
            'total',
            'files',
            'longest',
            'distance MB',
            'redo LSN',
          ],
          answer.checkpoints.map((c) => [
            moment(c.completedAt),
            c.reason,
            c.buffersWritten,
            c.buffersPercent,
            duration(c.writeMs),
            duration(c.syncMs),
            duration(c.totalMs),
            c.syncFiles,
            duration(c.longestSyncMs),
            Math.round(c.distanceBytes / 1024 ** 2),
            c.redoLsn,
          ]),
        ),
  )
}

/** Stretches of time with work and without a commit, and what they waited for. */
async function stalls(
  name: string,
  { json, ...asked }: Verb & { minutes: number; limit: number },
): Promise<void> {
  const client = openConsole()
  const { instanceId } = await findInstance(client, name)
  const answer = await client.trpc.stall.list.query({ instanceId, ...asked })
  printResult(json, answer.stalls, () =>
    answer.stalls.length === 0
      ? 'No stall in this time.'
      : table(
          ['started', 'lasted', 'waited for', 'wait events', 'sessions', 'checkpoint'],
          answer.stalls.map((s) => [
            moment(s.startedAt),
            duration(s.endedAt - s.startedAt),
            s.reason,
            s.waited,
            s.sessions,
            s.checkpoint && [s.checkpoint.kind, s.checkpoint.phase].filter(Boolean).join(', '),
          ]),
        ),
  )
}

export function addTelemetry(program: Command): void {
  const telemetry = program
    .command('telemetry')
    .summary('show samples, checkpoints and stalls of an instance')
    .description('Telemetry: one sample a second of each running instance, its checkpoints and its stalls.')
  verb(
    telemetry,
    'tail <instance>',
    'follow the samples as they are taken',
    'Follows an instance’s samples as they are taken, one line each; with --json one JSON object a line with every metric.',
  )
    .option('--seconds <n>', 'end after this measured time', wholeNumber(1, 86_400))
    .action(tail)
  verb(
    telemetry,
    'history <instance>',
    'print stored samples',
    'Prints stored samples, oldest first; with --json one JSON object a line.',
  )
    .option('--minutes <n>', 'how far back', wholeNumber(1, 129_600), 5)
    .option('--metrics <names...>', 'which metrics')
    .option('--points <n>', 'at most this many', wholeNumber(10, 5_000), 3_600)
    .action(history)
  verb(telemetry, 'checkpoints <instance>', 'list checkpoints, newest first')
    .option('--limit <n>', 'at most this many', wholeNumber(1, 1_000), 20)
    .action(checkpoints)
  verb(
    telemetry,
    'stalls <instance>',
    'list stalls and what they waited for, newest first',
    'Lists stalls that have ended: stretches of time in which the instance had work and committed none of it, with what it waited for.',
  )
    .option('--minutes <n>', 'how far back', wholeNumber(1, 129_600), 1_440)
    .option('--limit <n>', 'at most this many', wholeNumber(1, 1_000), 20)
    .action(stalls)
}
