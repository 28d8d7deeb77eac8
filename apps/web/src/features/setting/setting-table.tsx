'use client'
import { programSetting } from '@floe/domain'
import { Badge, Button, Card, Table, TableBody, TableCell, TableHead, TableHeader, TableRow } from '@floe/ui'
import { memo, useState } from 'react'
import type { MemberSettingValue, SettingMember, SettingView } from '@/server/api'
import { ImpactBadge } from './impact-badge'
import { type Draft, leadValue, rangeWords } from './setting-diff'

export const programSettingHint =
  'It runs programs or loads libraries on the host: only an owner or admin can change it.'

/** Settings with their values: of an instance with range and source, of several members beside each other. */
export const SettingTable = memo(function SettingTable({
  title,
  description,
  settings,
  members,
  draft,
  refusalOf,
  onChange,
}: {
  title: string
  description?: string | undefined
  settings: readonly SettingView[]
  members: readonly SettingMember[]
  draft: Draft
  /** Why a setting cannot be changed here; null where it can. */
  refusalOf: (setting: SettingView) => string | null
  onChange: (setting: SettingView) => void
}) {
  const several = members.length > 1
  return (
    <Card title={title} description={description} bodyClassName="p-0">
      <Table label={title}>
        <TableHead>
          <tr>
            <TableHeader className="w-72">Setting</TableHeader>
            {several ? (
              members.map((m) => (
                <TableHeader key={m.instanceId}>
                  {m.name}
                  <span className="block font-normal text-ink-muted">{m.memberRole}</span>
                </TableHeader>
              ))
            ) : (
              <>
                <TableHeader className="w-56">Value</TableHeader>
                <TableHeader>Range</TableHeader>
                <TableHeader>Source</TableHeader>
              </>
            )}
            <TableHeader>Needs</TableHeader>
            <TableHeader actions>
              <span className="sr-only">Change</span>
            </TableHeader>
          </tr>
        </TableHead>
        <TableBody>
          {settings.map((setting) => {
            const refusal = refusalOf(setting)
            return (
              <TableRow key={setting.name}>
                <Named setting={setting} several={several} drafted={draft.get(setting.name)} />
                {setting.values.map((value, i) => (
                  <ValueCell key={members[i]?.instanceId} value={value} />
                ))}
                {several ? null : <RangeAndSource setting={setting} />}
                <TableCell className="align-top">
                  <span className="inline-flex flex-wrap gap-1.5">
                    <ImpactBadge impact={setting.impact} />
                    {several && setting.ordered ? (
                      <Badge title="A greater value goes to the standbys first, a smaller one to the primary first">
                        in order
                      </Badge>
                    ) : null}
                  </span>
                </TableCell>
                <TableCell actions className="align-top">
                  {setting.impact === 'read-only' ? null : (
                    <Button
                      size="small"
                      disabled={refusal !== null}
                      title={refusal ?? undefined}
                      aria-label={`Change ${setting.name}${several ? ' on all members' : ''}`}
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

function Named({
  setting,
  several,
  drafted,
}: {
  setting: SettingView
  several: boolean
  drafted: string | null | undefined
}) {
  return (
    <TableCell className={several ? 'align-top sm:min-w-56' : 'min-w-56 align-top'}>
      <p className="font-mono break-all">{setting.name}</p>
      <p
        className={several ? 'mt-0.5 text-xs text-ink-muted max-sm:hidden' : 'mt-0.5 text-xs text-ink-muted'}
      >
        {setting.meaning ?? setting.description}
      </p>
      <p className="mt-1 flex flex-wrap gap-1.5 empty:hidden">
        {programSetting(setting.name) !== null ? <Badge title={programSettingHint}>admin only</Badge> : null}
        {setting.tooSmallOn.length > 0 ? (
          <Badge tone="bad">too small on {setting.tooSmallOn.join(', ')}</Badge>
        ) : setting.differs ? (
          <Badge tone="warn">differs</Badge>
        ) : null}
        {drafted !== undefined ? <Badge tone="accent">not applied yet: {drafted ?? 'default'}</Badge> : null}
      </p>
    </TableCell>
  )
}

function ValueCell({ value }: { value: MemberSettingValue | null }) {
  return (
    <TableCell className="min-w-24 align-top">
      <LongValue text={value === null ? '–' : value.shown === '' ? '(empty)' : (value.shown ?? '–')} />
      {value && value.pending !== null ? (
        <p className="mt-1">
          <Badge tone="warn" title="Written, and in force after the next restart">
            after a restart: {value.pending}
          </Badge>
        </p>
      ) : null}
      {value?.fileError ? <p className="mt-1 text-xs text-bad">{value.fileError}</p> : null}
    </TableCell>
  )
}

function RangeAndSource({ setting }: { setting: SettingView }) {
  const range = rangeWords(setting)
  const value = leadValue(setting)
  return (
    <>
      <TableCell className="max-w-52 truncate align-top text-xs text-ink-muted" title={range ?? undefined}>
        {range ?? '–'}
      </TableCell>
      <TableCell
        className="align-top text-xs text-ink-muted"
        title={
          value?.sourceFile
            ? `${value.sourceFile}${value.sourceLine === null ? '' : `:${value.sourceLine}`}`
            : undefined
        }
      >
        {value && value.managedValue !== null ? 'Floe' : value?.source}
      </TableCell>
    </>
  )
}

/** From this length on only the beginning is shown, and the rest on demand: connection strings would fill the screen. */
const mostShown = 80

function LongValue({ text }: { text: string }) {
  const [all, setAll] = useState(false)
  const long = text.length > mostShown
  return (
    <>
      <span className="font-mono [overflow-wrap:anywhere]">
        {long && !all ? `${text.slice(0, mostShown)}…` : text}
      </span>
      {long ? (
        <p>
          <Button variant="link" size="small" aria-expanded={all} onClick={() => setAll(!all)}>
            {all ? 'Show less' : 'Show all of it'}
          </Button>
        </p>
      ) : null}
    </>
  )
}
