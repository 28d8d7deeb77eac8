'use client'
import {
  Alert,
  ChartCursor,
  consoleTime,
  FaultAlert,
  type TimeRange,
  TimeRangePicker,
  timeRangeLabel,
  useNow,
} from '@floe/ui'
import { useCallback, useMemo, useRef, useState } from 'react'
import { checkpointBands } from '../checkpoint/checkpoint-bands'
import { CheckpointTable } from '../checkpoint/checkpoint-table'
import { RunningCheckpoint } from '../checkpoint/running-checkpoint'
import { useCheckpoints } from '../checkpoint/use-checkpoints'
import { CommitsWaitNotice } from '../cluster/commits-wait'
import { useInstance } from '../instance/instance-context'
import { LimitsCard } from '../limit/limits-card'
import { ProtectionCard } from '../protection/protection-card'
import { RecoveryHistory } from '../protection/recovery-history'
import { stallBands } from '../stall/stall-bands'
import { StallTable } from '../stall/stall-table'
import { useStalls } from '../stall/use-stalls'
import { chartsShown, overviewMetrics, overviewShape } from '../telemetry/chart-definitions'
import { ExportMenu } from '../telemetry/export-menu'
import { LiveChart } from '../telemetry/live-chart'
import { Readings } from '../telemetry/readings'
import { SampleAge } from '../telemetry/sample-age'
import { useTimeRange } from '../telemetry/use-time-range'
import { useTimeline, windowOf } from '../telemetry/use-timeline'
import { WhenVisible } from '../telemetry/when-visible'

const staleAfterMs = 5_000
const chartHeight = 228

/** What an instance does now and did before: readings, charts, checkpoints; all over one range of time. */
export function Overview() {
  const instance = useInstance()
  const { instanceId } = instance
  const [range, setRange] = useTimeRange()
  const now = useNow()
  const timeline = useTimeline({ instanceId, range, shape: overviewShape })
  // the end of a past range says nothing about how old the newest sample is
  const newestAt = timeline.newest?.at ?? (range.kind === 'last' ? timeline.newestAt : null)
  const underway = timeline.newest?.values.checkpoint_running === 1
  const live = range.kind === 'last'
  const { from, to } = windowOf(range, timeline.newestAt, now)
  const checkpoints = useCheckpoints(instanceId, range, from, underway)
  const staleMs =
    live && now !== null && newestAt !== null && now - newestAt >= staleAfterMs ? now - newestAt : null
  const grid = useRef<HTMLDivElement | null>(null)
  const [allMounted, setAllMounted] = useState(false)

  // what was running when the values stopped coming may have ended since
  const running = staleMs === null ? checkpoints.running : null
  // a running checkpoint's band grows with the window's end; without one the bands stay the same array
  const bandsEnd = running ? to : 0
  const bands = useMemo(
    () => checkpointBands(checkpoints.checkpoints, running, bandsEnd),
    [checkpoints.checkpoints, running, bandsEnd],
  )
  const stalls = useStalls(instanceId, range)
  const lasting = staleMs === null ? checkpoints.stall : null
  const marked = useMemo(
    () => [...bands, ...stallBands(stalls.stalls, lasting)],
    [bands, stalls.stalls, lasting],
  )
  const zoom = useCallback(
    (a: number, b: number) => setRange({ kind: 'between', from: a, to: b }),
    [setRange],
  )
  const followed = useRef<TimeRange>({ kind: 'last', ms: 5 * 60_000 })
  if (live) followed.current = range
  const charts = chartsShown(timeline.rows)

  return (
    <div className="flex flex-col gap-3">
      <div className="flex flex-wrap items-center justify-between gap-2">
        <TimeRangePicker
          range={range}
          onChange={setRange}
          now={consoleTime}
          live={live}
          onLive={(on) => setRange(on ? followed.current : { kind: 'between', from, to })}
        />
        <div className="flex items-center gap-3">
          <SampleAge at={newestAt} />
          <ExportMenu
            instance={instance}
            from={from}
            to={to}
            metrics={overviewMetrics}
            figures={grid}
            charts={charts.length}
            onMountAll={setAllMounted}
          />
        </div>
      </div>
      <CommitsWaitNotice />
      {timeline.fault ? <FaultAlert fault={timeline.fault} onRetry={timeline.retry} /> : null}
      {instance.state === 'stopped' && live ? (
        <Alert title="This instance is stopped">
          No samples are taken while it is stopped; the charts show earlier samples.
        </Alert>
      ) : null}
      <Readings sample={timeline.newest} stale={staleMs !== null || timeline.newest === null} />
      <RunningCheckpoint running={running} />
      <ChartCursor>
        <div ref={grid} className="grid grid-cols-1 gap-3 lg:grid-cols-2">
          {charts.map((chart, i) => (
            <WhenVisible key={chart.id} height={chartHeight} always={allMounted}>
              <LiveChart
                chart={chart}
                rows={timeline.rows}
                from={from}
                to={to}
                bands={chart.stalls ? marked : chart.checkpoints ? bands : noBands}
                generation={`${timeline.generation}|${live ? 'live' : `${from}:${to}`}`}
                delayMs={i * 70}
                loading={timeline.loading}
                staleMs={staleMs}
                instance={instance}
                onZoom={zoom}
              />
            </WhenVisible>
          ))}
        </div>
      </ChartCursor>
      <StallTable
        stalls={stalls.stalls}
        range={timeRangeLabel(range)}
        cut={stalls.cut}
        loading={stalls.loading}
        fault={stalls.fault}
        onRetry={stalls.retry}
      />
      <CheckpointTable
        checkpoints={checkpoints.checkpoints}
        range={timeRangeLabel(range)}
        cut={checkpoints.cut}
        loading={checkpoints.loading}
        fault={checkpoints.fault}
        onRetry={checkpoints.retry}
      />
      <LimitsCard
        instanceId={instance.instanceId}
        name={instance.name}
        busy={instance.openOperation !== null}
      />
      <ProtectionCard />
      <RecoveryHistory />
    </div>
  )
}

const noBands: ReturnType<typeof checkpointBands> = []
