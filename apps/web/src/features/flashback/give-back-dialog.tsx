'use client'
import type { FlashbackLost } from '@floe/domain'
import { Button, Dialog, Field, Input } from '@floe/ui'
import { type FormEvent, useState } from 'react'
import { partsOf } from './merge-plan'

/** Where the table is made; what is left out is as before the drop. */
export type Place = { resultName?: string; resultSchema?: string }

/** Asks for the name and the schema of a dropped table that is flashed back; both default to the former ones. */
export function GiveBackDialog({
  lost,
  onFlashBack,
  onClose,
}: {
  lost: FlashbackLost
  onFlashBack: (place: Place) => void
  onClose: () => void
}) {
  const [schema, name] = partsOf(lost.tableName)
  const [resultSchema, setSchema] = useState('')
  const [resultName, setName] = useState('')
  const submit = (event: FormEvent) => {
    event.preventDefault()
    onFlashBack({ ...(resultName ? { resultName } : {}), ...(resultSchema ? { resultSchema } : {}) })
  }
  return (
    <Dialog
      open
      onOpenChange={(open) => {
        if (!open) onClose()
      }}
      title={`Flash back ${lost.tableName}`}
      description="Makes a table with the columns, rows, keys, indexes, constraints and defaults of just before the drop. Triggers, rules, policies and privileges do not come back; what could not be made is named."
    >
      <form className="flex flex-col gap-3 pb-3" onSubmit={submit}>
        <Field
          label="Name"
          hint={`Default: its former name, or polar_flashback_${lost.table} if that name is taken`}
        >
          {(control) => (
            <Input
              {...control}
              value={resultName}
              placeholder={name}
              maxLength={63}
              autoComplete="off"
              spellCheck={false}
              onChange={(event) => setName(event.target.value)}
            />
          )}
        </Field>
        <Field
          label="Schema"
          hint="Default: its former schema. Enter another one if that schema was dropped, too"
        >
          {(control) => (
            <Input
              {...control}
              value={resultSchema}
              placeholder={schema}
              maxLength={63}
              autoComplete="off"
              spellCheck={false}
              onChange={(event) => setSchema(event.target.value)}
            />
          )}
        </Field>
        <div className="flex flex-wrap justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" variant="primary">
            Flash back
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
