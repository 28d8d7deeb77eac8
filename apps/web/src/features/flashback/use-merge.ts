'use client'
import { FlashbackMerged, type OperationId } from '@floe/domain'
import { useMutation } from '@tanstack/react-query'
import { useEffect, useEffectEvent, useState } from 'react'
import { useTRPC } from '@/trpc/client'
import { newIdempotencyKey } from '../console/idempotency-key'
import { useInstance } from '../instance/instance-context'
import { doesNothing, keylessMerge, type MergeOptions, standardMerge } from './merge-plan'
import { hasEnded, type ResultRef, useOrdered } from './use-order'

/** Rows that were ticked in a comparison, by their places in its samples. */
export type Selection = { comparison: OperationId; selected: ReadonlySet<number> }

/** The fault of a merge whose table was changed since the rows were counted. */
const CHANGED_SINCE = 'flashback.other_rows'
/** The fault of a merge that has to find rows by a key which the table does not have. */
const NO_KEY = 'flashback.no_key'

/**
 * A merge that is counted before it is done: a dry run for the options that are chosen, then exactly what it counted. A dry run
 * keeps others from writing to the table, so none is begun without a press. Where the table has changed in between, nothing is
 * merged.
 */
export function useMerge(result: ResultRef, selection: Selection | null) {
  const trpc = useTRPC()
  const { instanceId } = useInstance()
  const [options, setOptions] = useState<MergeOptions>(standardMerge)
  const [condition, setCondition] = useState('')
  const [ordered, setOrdered] = useState<{ operationId: OperationId; dryRun: boolean } | null>(null)
  const [changedSince, setChangedSince] = useState(false)
  const [keyless, setKeyless] = useState(false)
  const order = useMutation(
    trpc.flashback.merge.mutationOptions({
      onSuccess: ({ operationId }, { dryRun }) => setOrdered({ operationId, dryRun: dryRun === true }),
    }),
  )
  const watched = useOrdered(ordered?.operationId ?? null)
  const operation = watched?.operation ?? null
  const outcome = FlashbackMerged.safeParse(operation?.result).data ?? null
  const counts = ordered?.dryRun ? outcome : null
  const submit = (wanted: MergeOptions, expected: FlashbackMerged | null) => {
    const { inserted = 0, restored = 0, deleted = 0 } = expected ?? {}
    order.mutate({
      instanceId,
      database: result.database,
      result: result.result,
      resultName: result.resultName,
      tableName: result.tableName,
      ...wanted,
      ...(selection
        ? { comparison: selection.comparison, selected: [...selection.selected].sort((a, b) => a - b) }
        : condition.trim() === ''
          ? {}
          : { condition }),
      ...(expected ? { expected: { inserted, restored, deleted } } : {}),
      dryRun: expected === null,
      idempotencyKey: newIdempotencyKey(),
    })
  }
  const choose = (wanted: MergeOptions) => {
    setOptions(wanted)
    setOrdered(null)
  }
  const count = (wanted: MergeOptions) => {
    choose(wanted)
    setChangedSince(false)
    if (!doesNothing(wanted)) submit(wanted, null)
  }
  const outdated =
    ordered?.dryRun === false && operation?.state === 'failed' && operation.fault?.code === CHANGED_SINCE
  useEffect(() => {
    if (!outdated) return
    setChangedSince(true)
    setOrdered(null)
  }, [outdated])
  const lacksKey =
    ordered?.dryRun === true && operation?.state === 'failed' && operation.fault?.code === NO_KEY
  const countWithoutKey = useEffectEvent(() => {
    setKeyless(true)
    count(keylessMerge)
  })
  useEffect(() => {
    if (lacksKey) countWithoutKey()
  }, [lacksKey])
  const busy = order.isPending || (ordered !== null && !hasEnded(operation))
  const dryRun = order.isPending ? order.variables.dryRun : ordered?.dryRun
  return {
    options,
    condition,
    /** Only rows that match; empty: all. */
    restrict: (text: string) => {
      setCondition(text)
      setOrdered(null)
    },
    /** Chooses what the merge does; what was counted for another choice is forgotten. */
    choose,
    /** Counts what the chosen merge would do. */
    count: () => count(options),
    counts,
    countedBy: ordered?.dryRun ? ordered.operationId : null,
    /** The table has changed since rows were counted, so nothing was merged. */
    changedSince,
    merged: ordered?.dryRun === false ? outcome : null,
    /** The table has no key by which rows could be found, so missing ones can be inserted and no more. */
    keyless,
    watched: outdated || (lacksKey && !keyless) ? null : watched,
    error: order.error,
    busy,
    merging: busy && dryRun === false,
    merge: () => {
      if (counts) submit(options, counts)
    },
  }
}
export type Merge = ReturnType<typeof useMerge>
