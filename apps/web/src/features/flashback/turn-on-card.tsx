'use client'
import {
  type FlashbackForecast,
  type FlashbackLimits,
  type FlashbackSample,
  forecastFlashback,
  formatBytes,
  formatDuration,
  type SettingChange,
} from '@floe/domain'
import { Alert, Button, Card, Field, KeyValue, Select, Skeleton } from '@floe/ui'
import { useQuery } from '@tanstack/react-query'
import { History } from 'lucide-react'
import { useState } from 'react'
import { useTRPC } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'
import { useMayChange, viewerHint } from '../console/account-context'
import { useInstance } from '../instance/instance-context'
import { LEAST_MEASURED_MS, measuredWrites, newestOf, writesMetrics } from './measured-writes'

const MINUTE_MS = 60_000
const GB = 1024 ** 3
/** What was written in this time foretells what will be. */
const MEASURED_MINUTES = 60

const windows = [60, 180, 360, 720, 1_440] as const
const sizes = [2, 5, 10, 20, 50, 100] as const

/** Says what the flashback log costs, needs and may take here; `onTurnOn` gets the settings that turn it on. */
export function TurnOnCard({ onTurnOn }: { onTurnOn: (changes: SettingChange[]) => void }) {
  const { instanceId, cluster, state } = useInstance()
  const trpc = useTRPC()
  const mayChange = useMayChange()
  const [minutes, setMinutes] = useState<number>(180)
  const [gigabytes, setGigabytes] = useState<number>(10)
  const [mode, setMode] = useState('async')
  const history = useQuery(
    trpc.telemetry.history.queryOptions(
      { instanceId, minutes: MEASURED_MINUTES, metrics: writesMetrics, maxPoints: 360 },
      { refetchInterval: 30_000 },
    ),
  )
  const sampled = useQuery(
    trpc.flashback.read.queryOptions({ instanceId, sample: true }, { refetchInterval: 60_000 }),
  )
  const limits: FlashbackLimits = {
    recoveryArea: true,
    rotationMs: minutes * MINUTE_MS,
    keepBytes: 0,
    maxBytes: gigabytes * GB,
  }
  const measured = history.data ? measuredWrites(history.data) : null
  const enough = measured !== null && measured.measuredMs >= LEAST_MEASURED_MS
  const sample = sampled.data?.sample ?? null
  const forecast = enough && sample ? forecastFlashback(measured, sample, limits) : null
  const free = history.data ? newestOf(history.data, 'disk_free') : null
  // a bound, nothing that could be predicted: who drops tables knows how large they are
  const formerBytes = sampled.data?.log?.limits.recycleBytes
  const several = cluster.members > 1
  const changes: SettingChange[] = [
    { name: 'polar_enable_flashback_log', value: 'on' },
    { name: 'polar_enable_fast_recovery_area', value: 'on' },
    { name: 'polar_fast_recovery_area_rotation', value: `${minutes}min` },
    { name: 'polar_flashback_log_max_size', value: `${gigabytes}GB` },
    { name: 'polar_flashback_log_mode', value: mode },
  ]
  const unknown = history.isPending || sampled.isPending ? <Skeleton className="h-4 w-20" /> : 'unknown'
  return (
    <Card
      title="Turn on the flashback log"
      description="It keeps pages as they were before they are overwritten. From then on a table can be flashed back to any moment in its window, next to the present one."
      actions={
        <Button
          variant="primary"
          disabled={!mayChange || state !== 'running'}
          title={mayChange ? undefined : viewerHint}
          onClick={() => onTurnOn(changes)}
        >
          <History aria-hidden />
          Turn on
        </Button>
      }
    >
      <div className="grid gap-3 sm:grid-cols-3">
        <Field label="Window" hint="How far back, where size allows it">
          {(control) => (
            <Select {...control} value={minutes} onChange={(event) => setMinutes(Number(event.target.value))}>
              {windows.map((choice) => (
                <option key={choice} value={choice}>
                  {choice === 60 ? '1 hour' : `${choice / 60} hours`}
                </option>
              ))}
            </Select>
          )}
        </Field>
        <Field label="Size limit" hint="At the limit the window gets shorter">
          {(control) => (
            <Select
              {...control}
              value={gigabytes}
              onChange={(event) => setGigabytes(Number(event.target.value))}
            >
              {sizes.map((choice) => (
                <option key={choice} value={choice}>
                  {choice} GB
                </option>
              ))}
            </Select>
          )}
        </Field>
        <Field
          label="Mode"
          hint={
            mode === 'async'
              ? 'The window ends when the operating system crashes'
              : 'Survives such a crash; writes wait for the log'
          }
        >
          {(control) => (
            <Select {...control} value={mode} onChange={(event) => setMode(event.target.value)}>
              <option value="async">async</option>
              <option value="sync">sync</option>
            </Select>
          )}
        </Field>
      </div>
      <KeyValue
        className="mt-4"
        items={[
          {
            label: 'Growth of the log, predicted',
            value: forecast ? `${formatBytes(forecast.bytesPerHour)}/h` : unknown,
            source:
              'Full-page images in the WAL, and those omitted (polar_stat_wal), times what a sample of changed pages takes in the log (polar_flashback_log_sample)',
          },
          { label: 'Window at that rate', value: forecast ? windowInWords(forecast) : unknown },
          { label: 'Space of the log', value: forecast ? `${formatBytes(forecast.logBytes)}` : unknown },
          { label: 'WAL kept for the window', value: forecast ? formatBytes(forecast.walBytes) : unknown },
          {
            label: 'Files of dropped, truncated and rewritten tables',
            value:
              formerBytes === undefined
                ? unknown
                : formerBytes === null
                  ? 'no limit, as long as the window'
                  : `at most ${formatBytes(formerBytes)}`,
            source: 'polar_flashback_recycle_max_size',
          },
          {
            label: 'Free on its file system',
            value: free === null ? unknown : formatBytes(free),
            source: 'statfs() of the data directory',
          },
          { label: 'Effect on TPS', value: 'unknown: not measured on this host' },
          {
            label: 'Needs',
            value: several ? 'a restart of every member, one after the other' : 'a restart',
          },
        ]}
      />
      <p className="mt-3 max-w-3xl text-xs text-ink-muted">
        {forecastInWords({
          measuredMs: measured?.measuredMs ?? 0,
          sample,
          pending: history.isPending || sampled.isPending,
          fault: history.error ?? sampled.error,
        })}
        {several ? ' Each member keeps a log of its own.' : ''}
      </p>
      {forecast && free !== null && forecast.logBytes + forecast.walBytes + (formerBytes ?? 0) > free ? (
        <Alert tone="warn" className="mt-3" title="The file system of the data directory has less space free">
          Choose a shorter window or a smaller size. WAL is kept for the whole window unless
          max_slot_wal_keep_size limits it, and files of tables as polar_flashback_recycle_max_size says.
        </Alert>
      ) : null}
    </Card>
  )
}

/** What a prediction was made from, or why there is none. */
function forecastInWords(from: {
  measuredMs: number
  sample: FlashbackSample | null
  pending: boolean
  fault: Parameters<typeof faultOf>[0] | null
}): string {
  if (from.pending) return ''
  if (from.fault) return `Nothing can be predicted: ${faultOf(from.fault).message}.`
  if (from.measuredMs < LEAST_MEASURED_MS)
    return `A prediction needs samples of ${formatDuration(LEAST_MEASURED_MS)}; there are ${formatDuration(from.measuredMs)} of the last hour.`
  if (!from.sample)
    return 'Nothing can be predicted: the engine does not report the size of pages in the log, or none was changed yet.'
  return `Predicted from what was written in the last ${formatDuration(from.measuredMs)} that were measured: the WAL has an image of each page at its first change after a checkpoint, and the log keeps the same pages. ${from.sample.pages.toLocaleString('en-US')} pages that were changed last take ${formatBytes(from.sample.imageBytes)} each in the log, compressed. Points are taken every 5 min at the latest; where checkpoints were rarer, the log grows faster than predicted.`
}

function windowInWords({ windowMs }: FlashbackForecast): string {
  return windowMs === null ? 'unlimited' : formatDuration(windowMs)
}
