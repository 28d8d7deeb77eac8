'use client'
import { ChartCursor, consoleTime, FaultAlert, type TimeRange, TimeRangePicker, useNow } from '@floe/ui'
import { useCallback, useRef } from 'react'
import { useInstance } from '../instance/instance-context'
import { chartsShown, connectionCharts, connectionShape } from '../telemetry/chart-definitions'
import { LiveChart } from '../telemetry/live-chart'
import { SampleAge } from '../telemetry/sample-age'
import { useTimeRange } from '../telemetry/use-time-range'
import { useTimeline, windowOf } from '../telemetry/use-timeline'

const staleAfterMs = 5_000

/** Sessions, waits and transactions beside TPS, over one range of time. */
export function SessionCharts() {
  const instance = useInstance()
  const [range, setRange] = useTimeRange()
  const now = useNow()
  const timeline = useTimeline({ instanceId: instance.instanceId, range, shape: connectionShape })
  const live = range.kind === 'last'
  const newestAt = timeline.newest?.at ?? (live ? timeline.newestAt : null)
  const { from, to } = windowOf(range, timeline.newestAt, now)
  const staleMs =
    live && now !== null && newestAt !== null && now - newestAt >= staleAfterMs ? now - newestAt : null
  const followed = useRef<TimeRange>({ kind: 'last', ms: 5 * 60_000 })
  if (live) followed.current = range
  const zoom = useCallback(
    (a: number, b: number) => setRange({ kind: 'between', from: a, to: b }),
    [setRange],
  )
  return (
    <section aria-label="Charts" className="flex flex-col gap-3">
      <div className="flex flex-wrap items-center justify-between gap-2">
        <TimeRangePicker
          range={range}
          onChange={setRange}
          now={consoleTime}
          live={live}
          onLive={(on) => setRange(on ? followed.current : { kind: 'between', from, to })}
        />
        <SampleAge at={newestAt} />
      </div>
      {timeline.fault ? <FaultAlert fault={timeline.fault} onRetry={timeline.retry} /> : null}
      <ChartCursor>
        <div className="grid grid-cols-1 gap-3 lg:grid-cols-2">
          {chartsShown(timeline.rows, connectionCharts).map((chart, i) => (
            <LiveChart
              key={chart.id}
              chart={chart}
              rows={timeline.rows}
              from={from}
              to={to}
              generation={`${timeline.generation}|${live ? 'live' : `${from}:${to}`}`}
              delayMs={i * 70}
              loading={timeline.loading}
              staleMs={staleMs}
              instance={instance}
              onZoom={zoom}
            />
          ))}
        </div>
      </ChartCursor>
    </section>
  )
}
