'use client'
import type { FlashbackMerged, OperationId } from '@floe/domain'
import { Alert, Button, Checkbox, Dialog, Field, Input, KeyValue } from '@floe/ui'
import { useId, useRef } from 'react'
import { useMayAdminister } from '../console/account-context'
import { OperationLink } from '../operation/operation-link'
import { Refusal } from '../operation/refusal'
import type { WatchedOperation } from '../operation/use-operation'
import { EngineWords } from './engine-words'
import { conflictsInWords, doesNothing, type MergeOptions, mergedInWords } from './merge-plan'
import { OperationProgress } from './operation-progress'
import { type Merge, type Selection, useMerge } from './use-merge'
import type { ResultRef } from './use-order'

const number = new Intl.NumberFormat('en')

/**
 * Merges a result into its table: first counts what the chosen merge would do, then does exactly that, in one transaction. Where
 * the table has changed since, nothing is changed.
 */
export function MergeDialog({
  result,
  selection,
  onClose,
}: {
  result: ResultRef
  selection: Selection | null
  /** With whether a merge was begun. */
  onClose: (merged: boolean) => void
}) {
  const begun = useRef(false)
  return (
    <Dialog
      open
      onOpenChange={(open) => {
        if (!open) onClose(begun.current)
      }}
      title={selection ? `Merge ${number.format(selection.selected.size)} selected rows` : 'Merge'}
      description={`Puts rows of ${result.resultName} back into ${result.tableName}, in one transaction. Triggers and foreign keys of the table apply.`}
    >
      <MergeForm
        result={result}
        selection={selection}
        onMerge={() => {
          begun.current = true
        }}
        onClose={() => onClose(begun.current)}
      />
    </Dialog>
  )
}

function MergeForm({
  result,
  selection,
  onMerge,
  onClose,
}: {
  result: ResultRef
  selection: Selection | null
  onMerge: () => void
  onClose: () => void
}) {
  const merge = useMerge(result, selection)
  const mayAdminister = useMayAdminister()
  const { options, counts, merged, watched, busy } = merge
  if (merged) return <Merged merged={merged} watched={watched} result={result} onClose={onClose} />
  const nothing = !counts || counts.inserted + counts.restored + counts.deleted === 0
  return (
    <div className="flex flex-col gap-3 pb-3">
      <Options options={options} busy={busy} keyless={merge.keyless} onChange={merge.choose} />
      {selection || !mayAdminister ? null : (
        <Field
          label="Condition"
          hint="SQL expression on the columns, e.g. id < 100: only rows that match are merged. Evaluated as the table’s owner; stored with the operation."
        >
          {(control) => (
            <Input
              {...control}
              className="font-mono"
              value={merge.condition}
              placeholder="all rows"
              maxLength={1_000}
              disabled={busy}
              autoComplete="off"
              spellCheck={false}
              onChange={(event) => merge.restrict(event.target.value)}
            />
          )}
        </Field>
      )}
      {merge.keyless ? (
        <p className="text-xs text-ink-muted">
          {result.tableName} has no primary key, and no unique index on columns that are not null, by which a
          row of then could be found among those of now.
        </p>
      ) : null}
      {merge.changedSince ? (
        <Alert tone="warn" title={`${result.tableName} has changed since the rows were counted`}>
          Nothing was merged. Count the changes again.
        </Alert>
      ) : null}
      {doesNothing(options) ? (
        <p className="text-sm text-ink-muted">Choose at least one of the three.</p>
      ) : counts ? (
        <Counted counts={counts} operationId={merge.countedBy} result={result} />
      ) : busy ? null : (
        <p className="text-sm text-ink-muted">
          Counting compares the rows of then and now. Until it ends, other sessions can read{' '}
          {result.tableName} but cannot write to it. The same holds while the merge runs.
        </p>
      )}
      <Course merge={merge} />
      <div className="flex flex-wrap justify-end gap-2">
        <Button onClick={onClose}>{merge.merging ? 'Close' : 'Cancel'}</Button>
        <Button
          variant={counts ? 'secondary' : 'primary'}
          disabled={busy || doesNothing(options)}
          busy={busy && !merge.merging}
          onClick={merge.count}
        >
          {counts ? 'Count again' : 'Count the changes'}
        </Button>
        <Button
          variant={counts ? 'primary' : 'secondary'}
          disabled={nothing || busy}
          busy={merge.merging}
          onClick={() => {
            onMerge()
            merge.merge()
          }}
        >
          Merge
        </Button>
      </div>
    </div>
  )
}

/** How far the count or the merge is, or why it was not done. */
function Course({ merge: { watched, error, busy, merging, count } }: { merge: Merge }) {
  if (error) return <Refusal error={error} onRetry={count} />
  if (!watched)
    return busy ? (
      <p role="status" className="text-sm text-ink-muted">
        Counting what the merge would do …
      </p>
    ) : null
  return (
    <OperationProgress
      watched={watched}
      title={merging ? 'Merging' : 'Counting what the merge would do'}
      onAgain={count}
    />
  )
}

const choices = [
  {
    key: 'insertMissing',
    title: 'Insert missing rows',
    hint: 'Rows that were there then and are not now',
  },
  {
    key: 'restoreChanged',
    title: 'Restore changed rows',
    hint: 'Overwrites the present values of rows that have changed since',
  },
  { key: 'deleteAdded', title: 'Delete rows added since', hint: 'Removes rows that were not there then' },
] as const

function Options({
  options,
  busy,
  keyless,
  onChange,
}: {
  options: MergeOptions
  busy: boolean
  keyless: boolean
  onChange: (options: MergeOptions) => void
}) {
  const id = useId()
  return (
    <fieldset className="flex flex-col gap-2" disabled={busy}>
      <legend className="sr-only">What the merge does</legend>
      {choices.map(({ key, title, hint }) => (
        <div key={key} className="flex items-start gap-2.5">
          <Checkbox
            id={`${id}-${key}`}
            className="mt-0.5"
            checked={options[key]}
            disabled={busy || (keyless && key !== 'insertMissing')}
            aria-describedby={`${id}-${key}-hint`}
            onCheckedChange={(on) => onChange({ ...options, [key]: on === true })}
          />
          <div className="min-w-0 text-sm">
            <label htmlFor={`${id}-${key}`} className="font-medium">
              {title}
            </label>
            <p id={`${id}-${key}-hint`} className="text-xs text-ink-muted">
              {hint}
            </p>
          </div>
        </div>
      ))}
    </fieldset>
  )
}

function Counted({
  counts,
  operationId,
  result,
}: {
  counts: FlashbackMerged
  operationId: OperationId | null
  result: ResultRef
}) {
  const nothing = counts.inserted + counts.restored + counts.deleted === 0
  return (
    <div role="status" className="flex flex-col gap-2 rounded-md border border-line bg-sunken/50 px-3 py-2.5">
      {nothing ? (
        <p className="text-sm font-medium">
          {counts.conflicts > 0
            ? 'Every row that is missing is in conflict with one that is there.'
            : `Nothing to merge: ${result.tableName} has these rows already.`}
        </p>
      ) : null}
      <KeyValue
        items={[
          { label: 'Inserts', value: number.format(counts.inserted) },
          { label: 'Restores', value: number.format(counts.restored) },
          { label: 'Deletes', value: number.format(counts.deleted) },
          { label: 'Conflicts', value: number.format(counts.conflicts) },
        ]}
        className="grid-cols-4! gap-x-3!"
      />
      {counts.conflicts > 0 ? <Conflicts operationId={operationId} /> : null}
      <p className="text-xs text-ink-muted">
        Counted in a transaction that was rolled back. The merge does exactly this, or nothing.
      </p>
    </div>
  )
}

/** What a conflict is; one of them with its values for those who may see rows. */
function Conflicts({ operationId }: { operationId: OperationId | null }) {
  return (
    <div className="text-xs text-ink-muted">
      <p>
        A conflict is a missing row that cannot be inserted, because another row has its value in a unique
        index now. It is left out.
      </p>
      {operationId ? <EngineWords operationId={operationId} what="Show one" /> : null}
    </div>
  )
}

function Merged({
  merged,
  watched,
  result,
  onClose,
}: {
  merged: FlashbackMerged
  watched: WatchedOperation | null
  result: ResultRef
  onClose: () => void
}) {
  return (
    <div className="flex flex-col gap-3 pb-3">
      <Alert
        tone="good"
        title={`${mergedInWords(merged)} in ${result.tableName}`}
        actions={watched ? <OperationLink operationId={watched.operationId} /> : undefined}
      >
        {`${conflictsInWords(merged)} `.trimStart()}
        {result.resultName} is kept until you drop it.
      </Alert>
      <div className="flex justify-end">
        <Button variant="primary" onClick={onClose}>
          Done
        </Button>
      </div>
    </div>
  )
}
