import { newestSeq, readRetention, readSamples, showInstance } from '@floe/db'
import { type Fault, InstanceId } from '@floe/domain'
import { chooseResolution, type MetricName, metrics } from '@floe/telemetry'
import { z } from 'zod'
import { actorOf } from './context'
import { log } from './log'
import type { Ports } from './ports'
import { MetricNames } from './routers/telemetry/telemetry.types'

/** Rows of one export; a longer range comes at the next coarser resolution. */
const ROWS_MAX = 100_000
/** Longest range of one export. */
const RANGE_MAX_DAYS = 400
/** Exports this process writes at once; each holds a connection of the control database now and then. */
const EXPORTS_MAX = 4
const EXPORT_IDLE_MS = 60_000
/** Points read from the database at a time. */
const POINTS_PER_READ = 2_000

// what is beyond is no date
const MOMENT_MAX = 8.64e15
const moment = z.union([
  z.coerce.number().positive().max(MOMENT_MAX),
  z.iso.datetime({ offset: true }).transform((text) => Date.parse(text)),
])
const Query = z
  .object({
    instanceId: InstanceId,
    from: moment,
    to: moment,
    metrics: z
      .string()
      .transform((text) => text.split(','))
      .pipe(MetricNames)
      .default(metrics.map((m) => m.name)),
  })
  .refine((q) => q.from < q.to, { message: 'from must be before to' })
  .refine((q) => q.to - q.from <= RANGE_MAX_DAYS * 86_400_000, {
    message: `the range may be at most ${RANGE_MAX_DAYS} days`,
  })

let exporting = 0

/**
 * `GET /api/export/samples.csv?instanceId&from&to&metrics=a,b`: stored samples of a range as CSV, streamed. Times are RFC
 * 3339 in UTC, an unknown value is an empty field. `from` and `to` in ms since the epoch or RFC 3339.
 */
export async function exportSamples(ports: Ports, request: Request): Promise<Response> {
  const actor = await actorOf(ports, request.headers)
  if (!actor)
    return refuse(401, {
      code: 'session.missing',
      message: 'you are not signed in',
      hint: 'Sign in and try again.',
    })
  const query = Query.safeParse(Object.fromEntries(new URL(request.url).searchParams))
  if (!query.success)
    return refuse(400, {
      code: 'input.invalid',
      message: 'invalid input',
      detail: query.error.issues.map((i) => `${i.path.join('.') || 'query'}: ${i.message}`).join('; '),
    })
  const { instanceId, from, to, metrics: names } = query.data
  const instance = await showInstance(ports.database.pool, instanceId)
  if (!instance)
    return refuse(404, {
      code: 'instance.not_found',
      message: `instance "${instanceId}" does not exist`,
    })
  if (exporting >= EXPORTS_MAX)
    return refuse(429, {
      code: 'export.too_many',
      message: 'too many exports are being written',
      hint: 'Try again when one of them has ended.',
    })
  exporting++
  let ended = false
  const end = () => {
    if (!ended) exporting--
    ended = true
  }
  // who never reads on must not keep its place for ever
  const idle = setTimeout(end, EXPORT_IDLE_MS)
  idle.unref()
  const lines = csv(ports, { instanceId, from, to, names })
  const encoder = new TextEncoder()
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await lines.next()
        idle.refresh()
        if (!done) return controller.enqueue(encoder.encode(value))
        end()
        controller.close()
      } catch (err) {
        end()
        // the client sees a broken transfer, not a file that looks whole
        log.error('export.failed', { instanceId, err })
        controller.error(new Error('export failed'))
      }
    },
    async cancel() {
      end()
      await lines.return(undefined)
    },
  })
  const day = (at: number) => new Date(at).toISOString().replace(/[-:]|\.\d+/g, '')
  return new Response(body, {
    headers: {
      'content-type': 'text/csv; charset=utf-8',
      'content-disposition': `attachment; filename="${instance.name}-${day(from)}-${day(to)}.csv"`,
      'cache-control': 'no-store',
    },
  })
}

async function* csv(
  ports: Ports,
  range: { instanceId: string; from: number; to: number; names: MetricName[] },
): AsyncGenerator<string> {
  const { instanceId, from, to, names } = range
  const { pool } = ports.database
  yield `time,interval_ms,${names.join(',')}\r\n`
  if ((await newestSeq(pool, instanceId)) === null) return
  // one resolution for the whole file: what its oldest part is kept at
  const resolution = chooseResolution(
    { from, to, maxPoints: ROWS_MAX, now: Date.now() },
    await readRetention(pool),
  )
  const { stepSeconds } = resolution
  const windowMs = stepSeconds * 1_000 * POINTS_PER_READ
  let last = Number.NEGATIVE_INFINITY
  for (let start = alignDown(from, stepSeconds); start <= to; start += windowMs) {
    const { points } = await readSamples(pool, {
      instanceId,
      from: Math.max(start, from),
      to: Math.min(start + windowMs, to),
      metrics: names,
      resolution,
    })
    let text = ''
    for (const point of points) {
      // a sample on the border of two reads is in both
      if (point.at <= last) continue
      last = point.at
      const values = point.average.map((value) => value ?? '')
      text += `${new Date(point.at).toISOString()},${Math.round(point.intervalMs)},${values.join(',')}\r\n`
    }
    if (text) yield text
  }
}

const alignDown = (at: number, stepSeconds: number) =>
  Math.floor(at / (stepSeconds * 1_000)) * stepSeconds * 1_000

const refuse = (status: number, fault: Fault) => Response.json({ fault }, { status })
