'use client'
import { ioSettings } from '@floe/domain'
import { Age, Alert, Badge, Button, Card, FaultAlert, Input, SkeletonRows, Slider, Switch } from '@floe/ui'
import { type ReactNode, useId, useState } from 'react'
import type { SettingView } from '@/server/api'
import { useMayChange, viewerHint } from '../console/account-context'
import { useInstance } from '../instance/instance-context'
import { ConfirmedAlert, type ConfirmedChanges } from './confirmed-changes'
import { ImpactBadge } from './impact-badge'
import { LastChange } from './last-change'
import { requestsOf } from './last-change-of-size'
import { longestWriteSettings, longestWriteWords } from './longest-write'
import { ReviewDialog, type Wanted } from './review'
import { currentText, type Draft, leadValue, rangeWords, settingDiff } from './setting-diff'
import { formatSize, nearestStop, parseSize, sizeStops, sizeTicks } from './size-value'
import { useSettings } from './use-settings'

const names = [...ioSettings, ...longestWriteSettings]

/** The bulk sizes, full_page_writes and the guard, each with what it means; `children` stand above them. */
export function IoSettings({ children }: { children: ReactNode }) {
  const { instanceId } = useInstance()
  const scope = { instanceId }
  const { settings, observedAt, fault, loading, retry, refresh } = useSettings(scope, {
    names,
    everyMs: 5_000,
  })
  const [draft, setDraft] = useState<Draft>(new Map())
  const [applied, setApplied] = useState<ConfirmedChanges | null>(null)
  const [reviewing, setReviewing] = useState<Wanted | null>(null)
  const mayChange = useMayChange()
  if (!settings)
    return fault ? (
      <FaultAlert fault={fault} onRetry={retry} />
    ) : (
      <Card>
        <SkeletonRows label={loading ? 'Asking the instance' : 'Loading'} />
      </Card>
    )
  const ordered = ioSettings.flatMap((name) => settings.find((s) => s.name === name) ?? [])
  const missing = ioSettings.filter((name) => !settings.some((s) => s.name === name))
  const changes = settingDiff(ordered, draft)
  const change = (name: string, value: string) => setDraft((before) => new Map(before).set(name, value))
  return (
    <>
      {fault ? <FaultAlert fault={fault} onRetry={retry} tone="warn" className="mb-3" /> : null}
      <ConfirmedAlert changes={applied} />
      {children}
      <Card
        title="I/O"
        description={
          <>
            Read from pg_settings <Age at={observedAt} />. Names and values are PostgreSQL’s and PolarDB’s
            own.
          </>
        }
        bodyClassName="p-0"
      >
        {ordered.map((setting) =>
          setting.type === 'bool' ? (
            <SwitchRow
              key={setting.name}
              setting={setting}
              value={draft.get(setting.name) ?? currentText(setting)}
              disabled={!mayChange}
              onChange={(value) => change(setting.name, value)}
            />
          ) : (
            <SizeRow
              key={setting.name}
              setting={setting}
              value={draft.get(setting.name) ?? currentText(setting)}
              disabled={!mayChange}
              limited={
                setting.name === 'polar_bulk_write_size'
                  ? longestWriteWords(settings, setting, draft.get(setting.name) ?? currentText(setting))
                  : null
              }
              onChange={(value) => change(setting.name, value)}
            />
          ),
        )}
        {missing.length > 0 ? (
          <p className="border-t border-line px-4 py-3 text-sm text-ink-muted">
            This engine does not know {missing.join(', ')}.
          </p>
        ) : null}
        <div className="flex flex-wrap items-center justify-end gap-2 border-t border-line bg-sunken/50 px-4 py-3">
          <span className="mr-auto text-sm text-ink-muted" aria-live="polite">
            {changes.length === 0
              ? 'Nothing is changed.'
              : changes.length === 1
                ? '1 change, not applied yet'
                : `${changes.length} changes, not applied yet`}
          </span>
          <Button disabled={draft.size === 0} onClick={() => setDraft(new Map())}>
            Discard
          </Button>
          <Button
            variant="primary"
            disabled={changes.length === 0 || !mayChange}
            title={mayChange ? undefined : viewerHint}
            onClick={() => {
              setApplied(null)
              setReviewing({ changes })
            }}
          >
            Review changes
          </Button>
        </div>
      </Card>
      <ReviewDialog
        scope={scope}
        wanted={reviewing}
        settings={ordered}
        onClose={() => setReviewing(null)}
        onApplied={(confirmed) => {
          setApplied(confirmed)
          setDraft(new Map())
          refresh()
        }}
      />
    </>
  )
}

function Heading({ setting, id }: { setting: SettingView; id: string }) {
  return (
    <div className="min-w-0">
      <div className="flex flex-wrap items-center gap-2">
        <label htmlFor={id} className="text-sm font-medium">
          {setting.title ?? setting.name}
        </label>
        <code className="font-mono text-xs text-ink-muted">{setting.name}</code>
        <ImpactBadge impact={setting.impact} />
        {leadValue(setting)?.pendingRestart ? <Badge tone="warn">waits for a restart</Badge> : null}
      </div>
      <p id={`${id}-meaning`} className="mt-1 max-w-2xl text-sm text-ink-muted">
        {setting.meaning ?? setting.description}
      </p>
    </div>
  )
}

const row = 'grid gap-x-8 gap-y-3 border-t border-line px-4 py-4 first:border-0 lg:grid-cols-[1fr_22rem]'

function SizeRow({
  setting,
  value,
  disabled,
  limited,
  onChange,
}: {
  setting: SettingView
  value: string
  disabled: boolean
  /** Why less than the value has an effect. */
  limited: string | null
  onChange: (value: string) => void
}) {
  const id = useId()
  const { instanceId } = useInstance()
  const requests = requestsOf(setting.name)
  const stops = sizeStops(setting.unit, setting.max)
  const bytes = parseSize(value, setting.unit)
  const top = stops.at(-1)
  const problem =
    bytes === null
      ? 'a size such as 128kB or 4MB, or 0'
      : top !== undefined && bytes > top
        ? `at most ${formatSize(top)}`
        : null
  return (
    <div className={row}>
      <Heading setting={setting} id={id} />
      <div className="flex flex-col gap-2">
        <div className="flex items-center gap-3">
          <Input
            id={id}
            className="w-28 font-mono"
            value={value}
            disabled={disabled}
            spellCheck={false}
            autoComplete="off"
            aria-invalid={problem ? true : undefined}
            aria-describedby={`${id}-range`}
            onChange={(event) => onChange(event.target.value)}
          />
          <span className="text-xs text-ink-muted">
            now <span className="font-mono text-ink">{leadValue(setting)?.shown ?? '–'}</span>
            {bytes !== null && bytes > 0 && setting.unit === '8kB' ? ` · ${bytes / 8192} blocks` : ''}
          </span>
        </div>
        {stops.length > 1 ? (
          <Slider
            thumbLabel={`${setting.name}, slider`}
            valueText={formatSize(stops[nearestStop(stops, bytes ?? 0)] ?? 0)}
            min={0}
            max={stops.length - 1}
            step={1}
            ticks={sizeTicks(stops)}
            disabled={disabled}
            value={[nearestStop(stops, bytes ?? 0)]}
            onValueChange={([index]) => {
              const stop = stops[index ?? 0]
              if (stop !== undefined) onChange(formatSize(stop))
            }}
          />
        ) : null}
        <p id={`${id}-range`} className={problem ? 'text-xs font-medium text-bad' : 'sr-only'}>
          {problem
            ? `Must be ${problem}.`
            : top === undefined
              ? rangeWords(setting)
              : `0 to ${formatSize(top)}`}
        </p>
        {limited ? <p className="text-xs font-medium text-warn">{limited}</p> : null}
      </div>
      {requests ? <LastChange instanceId={instanceId} name={setting.name} kind={requests} /> : null}
    </div>
  )
}

function SwitchRow({
  setting,
  value,
  disabled,
  onChange,
}: {
  setting: SettingView
  value: string
  disabled: boolean
  onChange: (value: string) => void
}) {
  const id = useId()
  const on = value === 'on'
  return (
    <div className={row}>
      <Heading setting={setting} id={id} />
      <div className="flex items-start gap-3">
        <Switch
          id={id}
          checked={on}
          disabled={disabled}
          aria-label={setting.title ?? setting.name}
          aria-describedby={`${id}-meaning`}
          onCheckedChange={(checked) => onChange(checked ? 'on' : 'off')}
        />
        <span className="text-sm">
          <span className="font-mono">{on ? 'on' : 'off'}</span>
          {value !== leadValue(setting)?.shown ? (
            <span className="ml-2 text-xs text-ink-muted">
              now <span className="font-mono text-ink">{leadValue(setting)?.shown ?? '–'}</span>
            </span>
          ) : null}
        </span>
      </div>
      {!on && setting.warning ? (
        <Alert
          tone={setting.name === 'full_page_writes' ? 'warn' : 'bad'}
          className="lg:col-span-2"
          title={
            setting.name === 'full_page_writes'
              ? 'Needs a page repair source'
              : 'Torn pages may not be repaired'
          }
        >
          {setting.warning}
        </Alert>
      ) : null}
    </div>
  )
}
