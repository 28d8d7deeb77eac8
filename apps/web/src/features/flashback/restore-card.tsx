'use client'
import {
  FlashbackTime,
  flashbackTimeOf,
  formatBytes,
  HostDirectory,
  type OperationId,
  QualifiedName,
  RestoredTable,
} from '@floe/domain'
import { Alert, Button, Card, Field, type FieldControl, Input, useNow } from '@floe/ui'
import { useMutation } from '@tanstack/react-query'
import { ArchiveRestore } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import type { z } from 'zod'
import { useTRPC } from '@/trpc/client'
import { useMayAdminister } from '../console/account-context'
import { newIdempotencyKey } from '../console/idempotency-key'
import { useInstance } from '../instance/instance-context'
import { OperationLink } from '../operation/operation-link'
import { Refusal } from '../operation/refusal'
import { momentOfText, zoneText } from './moment-text'
import { OperationProgress } from './operation-progress'
import { useOrdered } from './use-order'

const number = new Intl.NumberFormat('en')

const PLACE = 'restore-from-backup'

/** From where a moment is out of reach to the card that helps. */
export function ToRestoreCard() {
  return (
    <Button asChild size="small">
      <a href={`#${PLACE}`}>Restore from a base backup</a>
    </Button>
  )
}

/** The way back to a moment that no window reaches: a base backup and a WAL archive that a person names. */
export function RestoreCard({ database }: { database: string | null }) {
  const { cluster } = useInstance()
  const mayAdminister = useMayAdminister()
  const [open, setOpen] = useState(false)
  const standby = cluster.memberRole === 'standby'
  const whyNot = standby
    ? 'A standby is read-only: do this on the primary.'
    : mayAdminister
      ? null
      : 'Directories of a host are named by an owner or admin.'
  return (
    <Card
      id={PLACE}
      className="scroll-mt-16"
      title="Restore a table from a base backup"
      description="For moments that no window reaches, with a backup and a WAL archive of your own on the primary’s host."
      bodyClassName={open ? undefined : 'hidden'}
      actions={
        open ? null : (
          <Button disabled={whyNot !== null} title={whyNot ?? undefined} onClick={() => setOpen(true)}>
            <ArchiveRestore aria-hidden />
            Restore…
          </Button>
        )
      }
    >
      {open ? <RestoreForm database={database} onClose={() => setOpen(false)} /> : null}
    </Card>
  )
}

type Inputs = { database: string; table: string; at: string; backup: string; wal: string }

/** What is wrong with a text; nothing while it is empty. */
const problem = (schema: z.ZodType, text: string): string | undefined => {
  const parsed = text === '' ? null : schema.safeParse(text)
  return parsed?.success === false ? `It ${parsed.error.issues[0]?.message}` : undefined
}

function RestoreForm({ database, onClose }: { database: string | null; onClose: () => void }) {
  const { instanceId } = useInstance()
  const trpc = useTRPC()
  const now = useNow() ?? Date.now()
  // the database that is shown beside may come later than the form is opened
  const [typed, setInputs] = useState<Omit<Inputs, 'database'> & { database: string | null }>({
    database: null,
    table: '',
    at: '',
    backup: '',
    wal: '',
  })
  const inputs: Inputs = { ...typed, database: typed.database ?? database ?? '' }
  const [operationId, setOperationId] = useState<OperationId | null>(null)
  const watched = useOrdered(operationId)
  const restore = useMutation(
    trpc.flashback.restore.mutationOptions({
      onSuccess: (ordered: { operationId: OperationId }) => setOperationId(ordered.operationId),
    }),
  )
  const at = exactMoment(inputs.at, now)
  const complete =
    inputs.database !== '' &&
    at !== null &&
    QualifiedName.safeParse(inputs.table).success &&
    [inputs.backup, inputs.wal].every((path) => HostDirectory.safeParse(path).success)
  const begin = () => {
    if (!complete || at === null) return
    restore.mutate({
      instanceId,
      database: inputs.database,
      tableName: inputs.table,
      at,
      backupDirectory: inputs.backup,
      walDirectory: inputs.wal,
      idempotencyKey: newIdempotencyKey(),
    })
  }
  const result = RestoredTable.safeParse(watched?.operation?.result).data ?? null
  if (watched && operationId)
    return (
      <div className="flex flex-col gap-3">
        <OperationProgress
          watched={watched}
          title={`Restoring ${inputs.table}`}
          onAgain={() => setOperationId(null)}
        />
        {result ? <Restored result={result} operationId={operationId} onClose={onClose} /> : null}
      </div>
    )
  return (
    <form
      className="flex flex-col gap-3"
      onSubmit={(event: FormEvent) => {
        event.preventDefault()
        begin()
      }}
    >
      <Fields inputs={inputs} now={now} onChange={setInputs} />
      <p className="max-w-3xl text-xs text-ink-muted">
        The backup is copied beside the instance, replayed to that moment by an engine of its own, and the
        table is copied out under a new name. The copy takes the size of the backup on the disk of the
        instance, unless the file system can share blocks, and is removed in the end. The instance keeps
        running; its settings and its tables stay as they are.
      </p>
      {restore.error ? <Refusal error={restore.error} /> : null}
      <div className="flex flex-wrap justify-end gap-2">
        <Button onClick={onClose}>Cancel</Button>
        <Button variant="primary" type="submit" disabled={!complete} busy={restore.isPending}>
          Restore
        </Button>
      </div>
    </form>
  )
}

/** As a person gives it where that is a time with a zone, as the engine names the nearest one; else what it comes to. */
function exactMoment(text: string, now: number): string | null {
  const exact = FlashbackTime.safeParse(text.trim())
  if (exact.success) return exact.data
  const at = momentOfText(text, now)
  return at === null ? null : flashbackTimeOf(at)
}

function Fields({
  inputs,
  now,
  onChange,
}: {
  inputs: Inputs
  now: number
  onChange: (inputs: Inputs) => void
}) {
  const control = (name: keyof Inputs, placeholder: string) => (attributes: FieldControl) => (
    <Input
      {...attributes}
      value={inputs[name]}
      placeholder={placeholder}
      autoComplete="off"
      spellCheck={false}
      onChange={(event) => onChange({ ...inputs, [name]: event.target.value })}
    />
  )
  const wrongTime =
    inputs.at !== '' && exactMoment(inputs.at, now) === null
      ? 'Type a time, e.g. 2026-11-24 14:03:12+01'
      : undefined
  return (
    <div className="grid gap-3 sm:grid-cols-3">
      <Field label="Database">{control('database', 'shop')}</Field>
      <Field
        label="Table"
        hint="As it was named then, with its schema"
        error={problem(QualifiedName, inputs.table)}
      >
        {control('table', 'public.account')}
      </Field>
      <Field label="Time" hint={zoneText(now)} error={wrongTime}>
        {control('at', '2026-11-24 14:03:12.345')}
      </Field>
      <Field
        label="Base backup"
        className="sm:col-span-3"
        hint="A directory as pg_basebackup -Fp makes it, on the primary’s host. The instance’s own user has to be able to read it."
        error={problem(HostDirectory, inputs.backup)}
      >
        {control('backup', '/srv/backup/2026-11-23')}
      </Field>
      <Field
        label="WAL archive"
        className="sm:col-span-3"
        hint="A directory with the WAL since then, as plain files, and with a transaction later than that time."
        error={problem(HostDirectory, inputs.wal)}
      >
        {control('wal', '/srv/wal')}
      </Field>
    </div>
  )
}

function Restored({
  result,
  operationId,
  onClose,
}: {
  result: RestoredTable
  operationId: OperationId
  onClose: () => void
}) {
  return (
    <Alert
      tone={result.warnings.length > 0 ? 'warn' : 'good'}
      title={`${result.resultName} has ${number.format(result.rows)} rows (${formatBytes(result.bytes)})`}
      actions={
        <>
          <Button size="small" onClick={onClose}>
            Close
          </Button>
          <OperationLink operationId={operationId} />
        </>
      }
    >
      {result.warnings.length > 0 ? result.warnings.join(' ') : 'Nothing else is left of the restore.'}
    </Alert>
  )
}
