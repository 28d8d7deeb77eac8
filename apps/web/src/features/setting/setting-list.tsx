'use client'
import { programSetting, type SettingScope } from '@floe/domain'
import { Age, Button, Card, Checkbox, EmptyState, FaultAlert, SearchField, SkeletonRows } from '@floe/ui'
import { Search } from 'lucide-react'
import { useSearchParams } from 'next/navigation'
import { useDeferredValue, useId, useMemo, useState } from 'react'
import type { SettingView } from '@/server/api'
import { useMayAdminister, useMayChange, viewerHint } from '../console/account-context'
import { useInstance } from '../instance/instance-context'
import { ChangeDialog } from './change-dialog'
import { ConfirmedAlert, type ConfirmedChanges } from './confirmed-changes'
import { groupSettings } from './group-settings'
import { ProfileDialog } from './profile-dialog'
import { ReviewDialog, type Wanted } from './review'
import { type Draft, settingDiff } from './setting-diff'
import { programSettingHint, SettingTable } from './setting-table'
import { useSettings } from './use-settings'

/**
 * Every setting of the engine's own binary, with what each member has; several changes are applied together. Across a
 * cluster, first those that deserve a look.
 */
export function SettingList({ scope }: { scope: SettingScope }) {
  const { name, cluster } = useInstance()
  const params = useSearchParams()
  const { settings, members, observedAt, fault, retry, refresh } = useSettings(scope, { everyMs: 30_000 })
  const several = members.length > 1
  const [search, setSearch] = useState(params.get('search') ?? '')
  const [changed, setChanged] = useState(false)
  const [pending, setPending] = useState(params.get('pending') === '1')
  const [notable, setNotable] = useState('clusterId' in scope)
  const wanted = useDeferredValue(search)
  const [draft, setDraft] = useState<Draft>(new Map())
  const [changing, setChanging] = useState<SettingView | null>(null)
  const [applied, setApplied] = useState<ConfirmedChanges | null>(null)
  const [reviewing, setReviewing] = useState<Wanted | null>(null)
  const [profiling, setProfiling] = useState(false)
  const refusalOf = useRefusal(several)
  const mayChange = useMayChange()
  // a search looks everywhere
  const few = notable && wanted.trim() === ''
  const groups = useMemo(
    () => groupSettings(settings ?? [], wanted, { changed, pending, notable: few }),
    [settings, wanted, changed, pending, few],
  )
  if (!settings)
    return fault ? (
      <FaultAlert fault={fault} onRetry={retry} />
    ) : (
      <Card>
        <SkeletonRows rows={8} label="Reading the settings" />
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
      {members.map((m) =>
        m.fault ? (
          <FaultAlert
            key={m.instanceId}
            fault={several ? { ...m.fault, message: `${m.name}: ${m.fault.message}` } : m.fault}
            tone="warn"
            className="mb-3"
          />
        ) : null,
      )}
      <div className="mb-3 flex flex-wrap items-center gap-x-5 gap-y-2">
        <SearchField
          label="Search settings"
          placeholder="Search name, description or category"
          className="w-full max-w-sm"
          value={search}
          onChange={setSearch}
        />
        {several ? (
          <Filter checked={notable} onChange={setNotable}>
            Only those in order, set by Floe or differing
          </Filter>
        ) : null}
        <Filter checked={changed} onChange={setChanged}>
          Only those not at their default
        </Filter>
        <Filter checked={pending} onChange={setPending}>
          Only those waiting for a restart
        </Filter>
        <span className="text-xs text-ink-muted">
          pg_settings of {several ? 'each member' : name}, read <Age at={observedAt} />
        </span>
        <Button
          className="ml-auto"
          disabled={!mayChange}
          title={mayChange ? undefined : viewerHint}
          onClick={() => setProfiling(true)}
        >
          From a profile
        </Button>
      </div>
      <ConfirmedAlert changes={applied} />
      {changes.length > 0 ? (
        <div className="sticky top-14 z-20 mb-3 flex flex-wrap items-center gap-2 rounded-lg border border-accent/40 bg-raised px-4 py-2 shadow-overlay">
          <span className="mr-auto text-sm">
            {changes.length === 1 ? '1 change' : `${changes.length} changes`}, not applied yet:{' '}
            <span className="font-mono text-[13px]">{changes.map((c) => c.name).join(', ')}</span>
          </span>
          <Button onClick={() => setDraft(new Map())}>Discard</Button>
          <Button variant="primary" onClick={() => setReviewing({ changes })}>
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
                  setNotable(false)
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
            <SettingTable
              key={category}
              title={category || `Settings of ${cluster.name}`}
              description={
                category
                  ? undefined
                  : 'Changed on all members together, one after the other; what fails puts all of them back. Members take those marked “in order” so that no standby has it smaller than its primary: it would stop replaying.'
              }
              settings={group}
              members={members}
              draft={draft}
              refusalOf={refusalOf}
              onChange={setChanging}
            />
          ))}
        </div>
      )}
      <ChangeDialog
        scope={scope}
        members={members}
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
      <ProfileDialog
        scope={scope}
        settings={settings}
        refusalOf={refusalOf}
        open={profiling}
        onClose={() => setProfiling(false)}
        onPick={(picked) => {
          // what was drafted by hand stays where the profile says nothing of it
          setDraft(new Map([...draft, ...picked]))
          setProfiling(false)
        }}
      />
      <ReviewDialog
        scope={scope}
        wanted={reviewing}
        settings={settings}
        onClose={() => setReviewing(null)}
        onApplied={confirm}
      />
    </>
  )
}

/** Why the person who is signed in cannot change a setting here; null where he can. */
function useRefusal(several: boolean): (setting: SettingView) => string | null {
  const mayChange = useMayChange()
  const mayAdminister = useMayAdminister()
  return useMemo(
    () => (setting) =>
      !mayChange
        ? viewerHint
        : programSetting(setting.name) !== null && !mayAdminister
          ? programSettingHint
          : several
            ? setting.ownOfMember
            : null,
    [mayChange, mayAdminister, several],
  )
}

function Filter({
  checked,
  onChange,
  children,
}: {
  checked: boolean
  onChange: (checked: boolean) => void
  children: string
}) {
  const id = useId()
  return (
    <span className="flex items-center gap-2">
      <Checkbox id={id} checked={checked} onCheckedChange={(now) => onChange(now === true)} />
      <label htmlFor={id}>{children}</label>
    </span>
  )
}
