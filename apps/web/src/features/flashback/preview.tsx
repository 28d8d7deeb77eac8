'use client'
import type { InstanceId, OperationId } from '@floe/domain'
import { Field, Select } from '@floe/ui'
import { useInstance } from '../instance/instance-context'
import { Refusal } from '../operation/refusal'
import { ComparisonCounts, comparisonInWords } from './comparison-counts'
import { clockText } from './event-mark'
import { OperationProgress } from './operation-progress'
import { RowsPanel } from './rows-panel'
import type { Preview } from './use-preview'

/** What a preview found, or how far it is; before it, where it reads. */
export function PreviewPanel({
  preview,
  operationId,
  flashed,
  moment,
  now,
}: {
  preview: Preview
  operationId: OperationId | null
  /** The flashback was begun. */
  flashed: boolean
  moment: number
  now: number
}) {
  const { watched, counts, error, begin } = preview
  return (
    <div className="flex flex-col gap-3">
      {counts || flashed ? null : <ReaderChoice preview={preview} />}
      {error ? <Refusal error={error} /> : null}
      {watched && counts === null ? (
        <OperationProgress watched={watched} title="Comparing rows" onAgain={begin} />
      ) : null}
      {counts && operationId ? (
        <>
          <p role="status" className="text-sm font-medium">
            {comparisonInWords(counts)}
          </p>
          <ComparisonCounts
            comparison={counts}
            then={clockText(moment, now)}
            at={watched?.operation?.endedAt ?? null}
            on={watched?.operation?.instanceName ?? null}
          />
          <RowsPanel operationId={operationId} counts={counts} />
        </>
      ) : null}
    </div>
  )
}

/** Where there are standbys with a window of their own: which member reads. */
function ReaderChoice({ preview: { readers, reader, setReader, busy } }: { preview: Preview }) {
  const { instanceId } = useInstance()
  if (readers.length < 2) return null
  return (
    <Field
      label="Read on"
      className="max-w-72"
      hint={
        reader === instanceId
          ? 'A standby can read instead, so that this instance is not loaded.'
          : 'This instance is not loaded by the preview.'
      }
    >
      {(control) => (
        <Select
          {...control}
          value={reader}
          disabled={busy}
          onChange={(event) => setReader(event.target.value as InstanceId)}
        >
          {readers.map((r) => (
            <option key={r.instanceId} value={r.instanceId}>
              {r.name}, {r.role}
            </option>
          ))}
        </Select>
      )}
    </Field>
  )
}
