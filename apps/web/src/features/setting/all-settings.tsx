'use client'
import { programSetting, type SettingChange } from '@floe/domain'
import {
  Age,
  Badge,
  Button,
  Card,
  Checkbox,
  EmptyState,
  FaultAlert,
  SearchField,
  SkeletonRows,
  Table,
  TableBody,
  TableCell,
  TableHead,
  TableHeader,
  TableRow,
} from '@floe/ui'
import { Search } from 'lucide-react'
import { useSearchParams } from 'next/navigation'
import { memo, useDeferredValue, useId, useMemo, useState } from 'react'
import type { SettingView } from '@/server/api'
import { useMayAdminister, useMayChange, viewerHint } from '../console/account-context'
import { useInstance } from '../instance/instance-context'
import { ChangeDialog } from './change-dialog'
import { ConfirmedAlert, type ConfirmedChanges } from './confirmed-changes'
import { groupSettings } from './group-settings'
import { ImpactBadge } from './impact-badge'
import { ReviewDialog } from './review-dialog'
import { currentText, type Draft, rangeWords, settingDiff } from './setting-diff'
import { useSettings } from './use-settings'

/** Every setting of the instance's own binary; several changes are applied together. */
export function AllSettings() {
  const { instanceId, name } = useInstance()
  const params = useSearchParams()
  const { settings, observedAt, fault, retry, refresh } = useSettings(instanceId, { everyMs: 30_000 })
  const [search, setSearch] = useState(params.get('search') ?? '')
  const [changed, setChanged] = useState(false)
  const [pending, setPending] = useState(params.get('pending') === '1')
  const wanted = useDeferredValue(search)
  const [draft, setDraft] = useState<Draft>(new Map())
  const [changing, setChanging] = useState<SettingView | null>(null)
  const [applied, setApplied] = useState<ConfirmedChanges | null>(null)
  const [reviewing, setReviewing] = useState<SettingChange[] | null>(null)
  const mayChange = useMayChange()
  const changedId = useId()
  const pendingId = useId()
  const groups = useMemo(
    () => groupSettings(settings ?? [], wanted, { changed, pending }),
    [settings, wanted, changed, pending],
  )
  if (!settings)
    return fault ? (
      <FaultAlert fault={fault} onRetry={retry} />
    ) : (
      <Card>
        <SkeletonRows rows={8} label="Asking the instance for its settings" />
      </Card>
    )
  const changes = settingDiff(settings, draft)
  const confirm = (confirmed: ConfirmedChanges) => {
    setApplied(confirmed)
    setDraft(new Map())
    refresh()
  }
  return (
    <>
      {fault ? <FaultAlert fault={fault} onRetry={retry} tone="warn" className="mb-3" /> : null}
      <div className="mb-3 flex flex-wrap items-center gap-x-5 gap-y-2">
        <SearchField
          label="Search settings"
          placeholder="Search name, description or category"
          className="w-full max-w-sm"
          value={search}
          onChange={setSearch}
        />
        <span className="flex items-center gap-2">
          <Checkbox
            id={changedId}
            checked={changed}
            onCheckedChange={(checked) => setChanged(checked === true)}
          />
          <label htmlFor={changedId}>Only those not at their default</label>
        </span>
        <span className="flex items-center gap-2">
          <Checkbox
            id={pendingId}
            checked={pending}
            onCheckedChange={(checked) => setPending(checked === true)}
          />
          <label htmlFor={pendingId}>Only those waiting for a restart</label>
        </span>
        <span className="text-xs text-ink-muted">
          pg_settings of {name}, read <Age at={observedAt} />
        </span>
      </div>
      <ConfirmedAlert changes={applied} />
      {changes.length > 0 ? (
        <div className="sticky top-14 z-20 mb-3 flex flex-wrap items-center gap-2 rounded-lg border border-accent/40 bg-raised px-4 py-2 shadow-overlay">
          <span className="mr-auto text-sm">
            {changes.length === 1 ? '1 change' : `${changes.length} changes`}, not applied yet:{' '}
            <span className="font-mono text-[13px]">{changes.map((c) => c.name).join(', ')}</span>
          </span>
          <Button onClick={() => setDraft(new Map())}>Discard</Button>
          <Button variant="primary" onClick={() => setReviewing(changes)}>
            Review changes
          </Button>
        </div>
      ) : null}
      {groups.length === 0 ? (
        <Card>
          <EmptyState
            icon={Search}
            title="No setting matches"
            action={
              <Button
                onClick={() => {
                  setSearch('')
                  setChanged(false)
                  setPending(false)
                }}
              >
                Show all
              </Button>
            }
          />
        </Card>
      ) : (
        <div className="flex flex-col gap-3">
          {groups.map(([category, group]) => (
            <SettingGroup
              key={category}
              category={category}
              settings={group}
              draft={draft}
              mayChange={mayChange}
              onChange={setChanging}
            />
          ))}
        </div>
      )}
      <ChangeDialog
        instanceId={instanceId}
        setting={changing}
        drafted={changing ? draft.get(changing.name) : undefined}
        changesWith={(value) =>
          changing ? settingDiff(settings, new Map(draft).set(changing.name, value)) : []
        }
        settings={settings}
        onKeep={(value) => {
          if (changing) setDraft(new Map(draft).set(changing.name, value))
          setChanging(null)
        }}
        onClose={() => setChanging(null)}
        onApplied={confirm}
      />
      <ReviewDialog
        instanceId={instanceId}
        changes={reviewing}
        settings={settings}
        onClose={() => setReviewing(null)}
        onApplied={confirm}
      />
    </>
  )
}

const programSettingHint =
  'It runs programs or loads libraries on the host: only an owner or admin can change it.'

const SettingGroup = memo(function SettingGroup({
  category,
  settings,
  draft,
  mayChange,
  onChange,
}: {
  category: string
  settings: readonly SettingView[]
  draft: Draft
  mayChange: boolean
  onChange: (setting: SettingView) => void
}) {
  const mayAdminister = useMayAdminister()
  return (
    <Card title={category} bodyClassName="p-0">
      <Table label={category}>
        <TableHead>
          <tr>
            <TableHeader className="w-72">Setting</TableHeader>
            <TableHeader className="w-56">Value</TableHeader>
            <TableHeader>Range</TableHeader>
            <TableHeader>Source</TableHeader>
            <TableHeader>Needs</TableHeader>
            <TableHeader actions>
              <span className="sr-only">Change</span>
            </TableHeader>
          </tr>
        </TableHead>
        <TableBody>
          {settings.map((setting) => {
            const drafted = draft.get(setting.name)
            const fixed = setting.impact === 'read-only'
            const range = rangeWords(setting)
            const adminOnly = programSetting(setting.name) !== null
            const allowed = adminOnly ? mayAdminister : mayChange
            return (
              <TableRow key={setting.name}>
                <TableCell className="min-w-56 align-top">
                  <p className="font-mono break-all">{setting.name}</p>
                  {adminOnly ? (
                    <Badge className="mt-0.5" title={programSettingHint}>
                      admin only
                    </Badge>
                  ) : null}
                  <p className="mt-0.5 text-xs text-ink-muted">{setting.description}</p>
                </TableCell>
                <TableCell className="min-w-28 align-top">
                  <span className="font-mono break-words">
                    {setting.shown === null ? '–' : setting.shown === '' ? '(empty)' : setting.shown}
                  </span>
                  {setting.pendingRestart ? (
                    <p className="mt-1">
                      <Badge tone="warn" title="Written, and in force after the next restart">
                        after a restart: {currentText(setting)}
                      </Badge>
                    </p>
                  ) : null}
                  {drafted !== undefined ? (
                    <p className="mt-1">
                      <Badge tone="accent">not applied yet: {drafted ?? 'default'}</Badge>
                    </p>
                  ) : null}
                  {setting.fileError ? <p className="mt-1 text-xs text-bad">{setting.fileError}</p> : null}
                </TableCell>
                <TableCell
                  className="max-w-52 truncate align-top text-xs text-ink-muted"
                  title={range ?? undefined}
                >
                  {range ?? '–'}
                </TableCell>
                <TableCell
                  className="align-top text-xs text-ink-muted"
                  title={
                    setting.sourceFile
                      ? `${setting.sourceFile}${setting.sourceLine === null ? '' : `:${setting.sourceLine}`}`
                      : undefined
                  }
                >
                  {setting.managedValue !== null ? 'Floe' : setting.source}
                </TableCell>
                <TableCell className="align-top">
                  <ImpactBadge impact={setting.impact} />
                </TableCell>
                <TableCell actions className="align-top">
                  {fixed ? null : (
                    <Button
                      size="small"
                      disabled={!allowed}
                      title={allowed ? undefined : mayChange ? programSettingHint : viewerHint}
                      aria-label={`Change ${setting.name}`}
                      onClick={() => onChange(setting)}
                    >
                      Change
                    </Button>
                  )}
                </TableCell>
              </TableRow>
            )
          })}
        </TableBody>
      </Table>
    </Card>
  )
})
