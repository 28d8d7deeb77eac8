'use client'
import {
  ceilingWords,
  formatBytes,
  HostShare,
  ProfileName,
  profileWords,
  type SettingScope,
} from '@floe/domain'
import {
  Alert,
  Button,
  Dialog,
  FaultAlert,
  Field,
  Input,
  Select,
  SkeletonRows,
  Table,
  TableBody,
  TableCell,
  TableHead,
  TableHeader,
  TableRow,
} from '@floe/ui'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useDeferredValue, useState } from 'react'
import type { SettingView } from '@/server/api'
import { useTRPC } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'
import { OldToNew } from './old-to-new'
import { currentText, type Draft, settingDiff } from './setting-diff'

type Props = {
  scope: SettingScope
  settings: readonly SettingView[]
  /** Why a setting cannot be changed here; null where it can. */
  refusalOf: (setting: SettingView) => string | null
  onPick: (draft: Draft) => void
}

/** Chooses a profile: what it would change, computed from the host's size, with a reason per line. Applies nothing itself. */
export function ProfileDialog({ open, onClose, ...props }: Props & { open: boolean; onClose: () => void }) {
  return (
    <Dialog
      open={open}
      onOpenChange={(now) => {
        if (!now) onClose()
      }}
      title="Settings from a profile"
      description="A profile is a set of ordinary settings. Those you take are drafts: review and apply them like any change, and roll them back the same way."
    >
      {open ? <ProfileForm {...props} onClose={onClose} /> : null}
    </Dialog>
  )
}

function ProfileForm({ scope, settings, refusalOf, onPick, onClose }: Props & { onClose: () => void }) {
  const trpc = useTRPC()
  const [profile, setProfile] = useState<ProfileName>('oltp-nvme')
  const [typed, setTyped] = useState<string | null>(null)
  const share = HostShare.safeParse(Number(useDeferredValue(typed)) / 100)
  const { data, error, refetch } = useQuery(
    trpc.setting.profile.queryOptions(
      { scope, profile, ...(typed !== null && share.success ? { share: share.data } : {}) },
      { placeholderData: keepPreviousData },
    ),
  )
  const wrong = typed !== null && !share.success
  const byName = new Map(settings.map((setting) => [setting.name, setting]))
  const lines = (data?.lines ?? []).flatMap((line) => {
    const setting = byName.get(line.name)
    return setting ? { ...line, setting, refusal: refusalOf(setting) } : []
  })
  const draft: Draft = new Map(lines.filter((l) => l.refusal === null).map((l) => [l.name, l.value]))
  const changing = new Set(settingDiff(settings, draft).map((change) => change.name))
  const unknown = (data?.lines.length ?? 0) - lines.length
  return (
    <form
      className="flex flex-col gap-4 pb-2"
      onSubmit={(event) => {
        event.preventDefault()
        onPick(new Map([...draft].filter(([name]) => changing.has(name))))
      }}
    >
      <div className="grid gap-4 sm:grid-cols-2">
        <Field label="Profile" hint={profileWords[profile].about}>
          {(control) => (
            <Select
              {...control}
              value={profile}
              onChange={(event) => setProfile(ProfileName.parse(event.target.value))}
            >
              {ProfileName.options.map((name) => (
                <option key={name} value={name}>
                  {profileWords[name].title}
                </option>
              ))}
            </Select>
          )}
        </Field>
        <Field
          label="Share of the host, %"
          error={wrong ? 'must be from 1 to 100' : undefined}
          hint={
            data
              ? `Of ${formatBytes(data.host.memoryBytes)} and ${data.host.cpus} CPUs of ${data.host.hostName}, which has ${data.host.instances === 1 ? 'one instance' : `${data.host.instances} instances`}. ${ceilingWords(data.ceiling) ?? ''}`
              : 'How much of its memory and CPUs the instance may use.'
          }
        >
          {(control) => (
            <Input
              {...control}
              inputMode="numeric"
              value={typed ?? (data ? `${Math.round(data.share * 100)}` : '')}
              onChange={(event) => setTyped(event.target.value)}
            />
          )}
        </Field>
      </div>
      {error ? <FaultAlert fault={faultOf(error)} onRetry={() => void refetch()} /> : null}
      {data ? (
        <>
          <Table label="Settings of the profile" boxClassName="max-h-80">
            <TableHead>
              <tr>
                <TableHeader>Setting, and why</TableHeader>
                <TableHeader>Now and proposed</TableHeader>
              </tr>
            </TableHead>
            <TableBody>
              {lines.map(({ name, value, reason, setting, refusal }) => (
                <TableRow key={name} className="align-top" data-changes={changing.has(name)}>
                  <TableCell className="whitespace-normal">
                    <p className="font-mono text-xs">{name}</p>
                    <p className="mt-1 text-ink-muted">{refusal ?? reason}</p>
                  </TableCell>
                  <TableCell className="whitespace-nowrap">
                    {changing.has(name) ? (
                      <OldToNew from={currentText(setting)} to={value} arrow="becomes" />
                    ) : (
                      <span className="text-ink-muted">
                        <span className="font-mono text-xs">{currentText(setting)}</span>
                        {refusal === null ? ', as proposed' : ''}
                      </span>
                    )}
                  </TableCell>
                </TableRow>
              ))}
            </TableBody>
          </Table>
          {unknown > 0 ? (
            <Alert
              title={
                unknown === 1
                  ? 'One setting of the profile does not exist in this engine and is left out.'
                  : `${unknown} settings of the profile do not exist in this engine and are left out.`
              }
            />
          ) : null}
        </>
      ) : error ? null : (
        <SkeletonRows rows={5} label="Computing the profile" />
      )}
      <div className="flex justify-end gap-2">
        <Button onClick={onClose}>Cancel</Button>
        <Button type="submit" variant="primary" disabled={wrong || changing.size === 0}>
          {changing.size === 0
            ? 'Nothing would change'
            : `Draft ${changing.size} ${changing.size === 1 ? 'change' : 'changes'}`}
        </Button>
      </div>
    </form>
  )
}
