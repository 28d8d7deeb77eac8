'use client'
import type { SettingChange } from '@floe/domain'
import { Button, Dialog, Field, Input } from '@floe/ui'
import { useState } from 'react'
import type { ClusterSettingView } from '@/server/api'
import { ClusterReview } from './cluster-review'

/** Asks for the new value of one setting for all members, then reviews what it would do on each. */
export function ClusterChangeDialog({
  setting,
  onClose,
  onApplied,
}: {
  /** `another`: the name is asked for, too. Null keeps the dialog shut. */
  setting: ClusterSettingView | 'another' | null
  onClose: () => void
  onApplied: () => void
}) {
  const known = setting === 'another' ? null : setting
  return (
    <Dialog
      open={setting !== null}
      onOpenChange={(open) => {
        if (!open) onClose()
      }}
      title={known ? `Change ${known.name} on all members` : 'Change a setting on all members'}
      description={known?.description}
    >
      {setting ? (
        <ChangeForm key={known?.name ?? ''} setting={known} onClose={onClose} onApplied={onApplied} />
      ) : null}
    </Dialog>
  )
}

function ChangeForm({
  setting,
  onClose,
  onApplied,
}: {
  setting: ClusterSettingView | null
  onClose: () => void
  onApplied: () => void
}) {
  const [name, setName] = useState(setting?.name ?? '')
  const [value, setValue] = useState(setting?.values.find((v) => v !== null)?.shown ?? '')
  const [reviewing, setReviewing] = useState<SettingChange[] | null>(null)
  if (reviewing)
    return (
      <ClusterReview
        wanted={{ changes: reviewing }}
        onBack={() => setReviewing(null)}
        onClose={onClose}
        onApplied={onApplied}
      />
    )
  const review = (wanted: string | null) => setReviewing([{ name: name.trim(), value: wanted }])
  return (
    <form
      className="flex flex-col gap-3 pb-3"
      onSubmit={(event) => {
        event.preventDefault()
        if (name.trim() !== '') review(value.trim())
      }}
    >
      {setting === null ? (
        <Field label="Setting" hint="By its PostgreSQL or PolarDB name">
          {(control) => (
            <Input
              {...control}
              autoFocus
              className="font-mono"
              spellCheck={false}
              autoComplete="off"
              value={name}
              maxLength={63}
              onChange={(event) => setName(event.target.value)}
            />
          )}
        </Field>
      ) : null}
      <Field label="New value" hint="The same for every member">
        {(control) => (
          <Input
            {...control}
            autoFocus={setting !== null}
            className="font-mono"
            spellCheck={false}
            autoComplete="off"
            value={value}
            onChange={(event) => setValue(event.target.value)}
          />
        )}
      </Field>
      <div className="flex flex-wrap justify-end gap-2">
        <Button className="mr-auto" disabled={name.trim() === ''} onClick={() => review(null)}>
          Back to the default
        </Button>
        <Button type="submit" variant="primary" disabled={name.trim() === ''}>
          Review changes
        </Button>
      </div>
    </form>
  )
}
