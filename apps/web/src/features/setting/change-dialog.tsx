'use client'
import type { SettingChange, SettingScope } from '@floe/domain'
import { Alert, Button, Dialog, Field, Input, Select } from '@floe/ui'
import { useState } from 'react'
import type { SettingMember, SettingView } from '@/server/api'
import type { ConfirmedChanges } from './confirmed-changes'
import { ImpactBadge } from './impact-badge'
import { Review } from './review'
import { currentText, isManaged, isOff, leadValue, rangeWords, valueWords } from './setting-diff'

type ChangeProps = {
  scope: SettingScope
  members: readonly SettingMember[]
  setting: SettingView
  drafted: string | null | undefined
  /** All changes that are wanted if this setting gets that value. */
  changesWith: (value: string | null) => SettingChange[]
  settings: readonly SettingView[]
  onKeep: (value: string | null) => void
  onClose: () => void
  onApplied: (changes: ConfirmedChanges) => void
}

/** Asks for the new value of one setting, of all members alike, then reviews it together with what else was changed. */
export function ChangeDialog({
  setting,
  ...props
}: Omit<ChangeProps, 'setting'> & {
  /** Null keeps the dialog shut. */
  setting: SettingView | null
}) {
  return (
    <Dialog
      open={setting !== null}
      onOpenChange={(open) => {
        if (!open) props.onClose()
      }}
      title={setting ? `Change ${setting.name}${'clusterId' in props.scope ? ' on all members' : ''}` : ''}
      description={setting?.meaning ?? setting?.description}
    >
      {setting ? <ChangeForm key={setting.name} setting={setting} {...props} /> : null}
    </Dialog>
  )
}

function ChangeForm({
  scope,
  members,
  setting,
  drafted,
  changesWith,
  settings,
  onKeep,
  onClose,
  onApplied,
}: ChangeProps) {
  const [value, setValue] = useState(drafted ?? currentText(setting))
  const [reviewing, setReviewing] = useState<SettingChange[] | null>(null)
  if (reviewing)
    return (
      <Review
        scope={scope}
        wanted={{ changes: reviewing }}
        settings={settings}
        onBack={() => setReviewing(null)}
        onClose={onClose}
        onApplied={onApplied}
      />
    )
  const choices = setting.type === 'bool' ? ['on', 'off'] : setting.choices
  const range = rangeWords(setting)
  const wanted = changesWith(value)
  const back = changesWith(null)
  return (
    <form
      className="flex flex-col gap-3 pb-3"
      onSubmit={(event) => {
        event.preventDefault()
        if (wanted.length > 0) setReviewing(wanted)
      }}
    >
      <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1 text-sm">
        <dt className="text-ink-muted">Now</dt>
        <dd className="font-mono break-all">
          {setting.differs
            ? setting.values.map((value, i) => (
                <p key={members[i]?.instanceId}>
                  {members[i]?.name}: {value?.shown ?? '–'}
                </p>
              ))
            : (leadValue(setting)?.shown ?? '–')}
        </dd>
        <dt className="text-ink-muted">Default</dt>
        <dd className="font-mono break-all">{valueWords(setting, setting.bootValue) ?? '–'}</dd>
        {range ? (
          <>
            <dt className="text-ink-muted">Range</dt>
            <dd className="font-mono break-words">{range}</dd>
          </>
        ) : null}
        <dt className="text-ink-muted">Needs</dt>
        <dd>
          <ImpactBadge impact={setting.impact} />
        </dd>
      </dl>
      {setting.detail ? <p className="text-xs text-ink-muted">{setting.detail}</p> : null}
      <Field
        label="New value"
        hint={
          [
            'clusterId' in scope ? 'The same for every member.' : '',
            setting.unit ? `With a unit; a bare number counts in ${setting.unit}.` : '',
          ]
            .join(' ')
            .trim() || undefined
        }
      >
        {(control) =>
          choices ? (
            <Select {...control} value={value} onChange={(event) => setValue(event.target.value)}>
              {choices.includes(value) ? null : <option value={value}>{value}</option>}
              {choices.map((choice) => (
                <option key={choice} value={choice}>
                  {choice}
                </option>
              ))}
            </Select>
          ) : (
            <Input
              {...control}
              autoFocus
              className="font-mono"
              spellCheck={false}
              autoComplete="off"
              value={value}
              onChange={(event) => setValue(event.target.value)}
            />
          )
        }
      </Field>
      {setting.warning && isOff(value) ? <Alert tone="warn">{setting.warning}</Alert> : null}
      <div className="flex flex-wrap justify-end gap-2">
        {isManaged(setting) ? (
          <Button className="mr-auto" onClick={() => setReviewing(back)}>
            Back to the default
          </Button>
        ) : null}
        <Button
          disabled={wanted.length === 0}
          title="Keep it and change other settings too; all are applied together"
          onClick={() => onKeep(value)}
        >
          Change more
        </Button>
        <Button type="submit" variant="primary" disabled={wanted.length === 0}>
          Review changes
        </Button>
      </div>
    </form>
  )
}
