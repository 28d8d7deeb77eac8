'use client'
import {
  formatDuration,
  HOST_CHECK_OLD_MS,
  type HostCheckLine,
  type HostCheckSeverity,
  hostCheckSummary,
  hostCheckTally,
  sortedHostCheck,
} from '@floe/domain'
import {
  Age,
  Alert,
  Badge,
  type BadgeTone,
  Button,
  Card,
  Copyable,
  EmptyState,
  FaultAlert,
  Table,
  TableBody,
  TableCell,
  TableHead,
  TableHeader,
  TableRow,
  useNow,
} from '@floe/ui'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { ClipboardCheck } from 'lucide-react'
import { useState } from 'react'
import type { RouterOutputs } from '@/server/api'
import { useTRPC } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'
import { useMayChange, viewerHint } from '../console/account-context'

type Detail = RouterOutputs['host']['show']

const looks: Record<HostCheckSeverity, { word: string; tone: BadgeTone }> = {
  fault: { word: 'fault', tone: 'bad' },
  advice: { word: 'advice', tone: 'warn' },
  unknown: { word: 'unknown', tone: 'neutral' },
  ok: { word: 'as wanted', tone: 'good' },
}

/** The machine against the recommended list: what the last check reported, when that was, and a button for another one. */
export function HostCheckCard({ host, check }: { host: Detail['host']; check: Detail['check'] }) {
  const trpc = useTRPC()
  const queries = useQueryClient()
  const mayChange = useMayChange()
  const run = useMutation(
    trpc.host.check.mutationOptions({
      onSettled: () => void queries.invalidateQueries(trpc.host.pathFilter()),
    }),
  )
  const { last, failed } = check
  // what just went wrong is reported once, by the answer to the press
  const fault = run.error ? faultOf(run.error) : run.isPending ? null : (failed?.fault ?? null)
  const silent = host.revokedAt !== null || host.state === 'offline'
  const busy = run.isPending || check.openSince !== null
  return (
    <Card
      title="Check"
      description={
        last ? (
          <>
            {hostCheckSummary(last.check.lines)}; checked <Age at={last.at} /> by {last.actorName}
          </>
        ) : (
          'Kernel settings, limits, file systems and disks against the recommended list. A check changes nothing.'
        )
      }
      actions={
        <Button
          busy={busy}
          disabled={!mayChange || silent}
          title={!mayChange ? viewerHint : silent ? 'Its agent does not answer.' : undefined}
          onClick={() => run.mutate({ hostId: host.hostId })}
        >
          {last ? 'Check again' : 'Check now'}
        </Button>
      }
      bodyClassName={last ? 'p-0' : undefined}
    >
      {fault ? (
        <div className={last ? 'px-4 pt-4' : undefined}>
          <FaultAlert fault={fault} tone="warn" />
          {last ? (
            <p className="mt-2 text-sm text-ink-muted">
              What follows is what the last successful check reported.
            </p>
          ) : null}
        </div>
      ) : null}
      {last ? (
        <Told last={last} silent={silent} host={host.name} />
      ) : fault ? null : (
        <EmptyState icon={ClipboardCheck} title="Never checked">
          {silent
            ? 'Its agent does not answer; it can be checked once it does.'
            : 'Mount options that give up durability are found here before a crash finds them.'}
        </EmptyState>
      )}
    </Card>
  )
}

function Told({
  last: { at, check },
  silent,
  host,
}: {
  last: NonNullable<Detail['check']['last']>
  silent: boolean
  host: string
}) {
  const now = useNow()
  const [all, setAll] = useState(false)
  const ageMs = now === null ? 0 : now - at
  const tally = hostCheckTally(check.lines)
  const lines = sortedHostCheck(check.lines).filter((line) => all || line.severity !== 'ok')
  return (
    <>
      <div className="flex flex-col gap-3 px-4 py-4 empty:hidden">
        {tally.fault > 0 ? (
          <Alert tone="bad" title="Acknowledged commits can be lost in a crash of this host">
            {tally.fault === 1 ? 'A mount option gives' : 'Mount options give'} up durability. Change{' '}
            {tally.fault === 1 ? 'it' : 'them'} first.
          </Alert>
        ) : null}
        {silent || ageMs > HOST_CHECK_OLD_MS ? (
          <Alert tone="warn" title={`As it was ${formatDuration(ageMs)} ago`}>
            {silent
              ? 'The agent does not answer: how it is now is not known.'
              : 'It may have changed since. Check again.'}
          </Alert>
        ) : null}
        {check.container ? (
          <p className="text-sm text-ink-muted">
            This host is a container: kernel settings are those of the machine around it and are changed
            there.
          </p>
        ) : null}
      </div>
      {lines.length > 0 ? (
        <Table label={`Check of ${host}`}>
          <TableHead>
            <tr>
              <TableHeader>Severity</TableHeader>
              <TableHeader>What and why</TableHeader>
              <TableHeader className="max-sm:hidden">Actual</TableHeader>
              <TableHeader className="max-sm:hidden">Wanted</TableHeader>
            </tr>
          </TableHead>
          <TableBody>
            {lines.map((line) => (
              <Line key={`${line.group} ${line.name}`} line={line} />
            ))}
          </TableBody>
        </Table>
      ) : null}
      {tally.ok > 0 ? (
        <div className="border-t border-line px-4 py-3">
          <Button variant="quiet" onClick={() => setAll(!all)} aria-expanded={all}>
            {all ? 'Hide what is as wanted' : `Show ${tally.ok} as wanted`}
          </Button>
        </div>
      ) : null}
    </>
  )
}

function Line({ line }: { line: HostCheckLine }) {
  const { word, tone } = looks[line.severity]
  const actual = line.actual ?? <span className="text-ink-muted">unknown</span>
  return (
    <TableRow className="align-top" data-severity={line.severity}>
      <TableCell>
        <Badge tone={tone}>{word}</Badge>
      </TableCell>
      {/* takes what is left, and no more for a long command */}
      <TableCell className="w-full max-w-0 whitespace-normal sm:min-w-80">
        <p className="font-medium break-words">{line.name}</p>
        <p className="break-words sm:hidden">
          {actual}, wanted {line.wanted}
        </p>
        <p className="mt-1 text-ink-muted">{line.why}</p>
        {line.command === null ? null : (
          <div className="mt-2">
            <Copyable text={line.command} what={`the command for ${line.name}`} />
          </div>
        )}
      </TableCell>
      <TableCell className="min-w-28 break-words max-sm:hidden">{actual}</TableCell>
      <TableCell className="min-w-28 break-words max-sm:hidden">{line.wanted}</TableCell>
    </TableRow>
  )
}
