'use client'
import { type FlashbackLog, FlashbackMade, type SettingChange } from '@floe/domain'
import { Alert, Card, EmptyState, FaultAlert, SkeletonRows } from '@floe/ui'
import { History } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { useInstance } from '../instance/instance-context'
import { ReviewDialog } from '../setting/review'
import { FlashbackCard } from './flashback-card'
import { LostTables } from './lost-tables'
import { MemberWindows } from './member-windows'
import { RestoreCard, ToRestoreCard } from './restore-card'
import { ResultList, useResults } from './result-list'
import { TurnOnCard } from './turn-on-card'
import { useOrdered } from './use-order'
import { useTables } from './use-tables'
import { useTarget } from './use-target'
import { useWindow } from './use-window'
import { WindowCard } from './window-card'

/** One press to have a table back as it was; how far back that reaches, or how it is turned on. */
export function Flashback() {
  const { instanceId, cluster } = useInstance()
  const [turningOn, setTurningOn] = useState<SettingChange[] | null>(null)
  return (
    <div className="flex flex-col gap-3">
      <Page onTurnOn={setTurningOn} />
      <MemberWindows />
      {/* not in the card: the instance restarts meanwhile, and the card is then away */}
      <ReviewDialog
        scope={cluster.members > 1 ? { clusterId: cluster.clusterId } : { instanceId }}
        wanted={turningOn ? { changes: turningOn } : null}
        settings={[]}
        onClose={() => setTurningOn(null)}
        onApplied={() => setTurningOn(null)}
      />
    </div>
  )
}

function Page({ onTurnOn }: { onTurnOn: (changes: SettingChange[]) => void }) {
  const { state, name, flashback, observedAt, hostName, hostState } = useInstance()
  const window = useWindow()
  const { fault, retry } = window
  // an agent that does not answer now has reported before
  const read = window.read ?? (fault && flashback && observedAt ? { log: flashback, observedAt } : null)
  if (state === 'unknown') {
    const seen = flashback && flashback.state !== 'off' && observedAt ? { log: flashback, observedAt } : null
    return (
      <>
        <Alert tone="warn" title={`Whether ${name} runs is unknown`}>
          {hostState === 'online'
            ? `The agent of host “${hostName}” does not know it. `
            : `The agent of host “${hostName}” does not answer. `}
          {seen ? 'The window is the one that was last seen. ' : ''}
          Tables can be flashed back once it is known to run.
        </Alert>
        {seen ? <WindowCard log={seen.log} observedAt={seen.observedAt} /> : null}
      </>
    )
  }
  if (state !== 'running')
    return (
      <Card>
        <EmptyState icon={History} title={`${name} does not run`}>
          Its window is known while it runs. Old pages are kept while it is stopped.
        </EmptyState>
      </Card>
    )
  if (!read)
    return fault ? (
      <FaultAlert fault={fault} onRetry={retry} />
    ) : (
      <Card>
        <SkeletonRows label="Reading the window" />
      </Card>
    )
  const problem = fault ? <FaultAlert fault={fault} onRetry={retry} tone="warn" /> : null
  if (read.log === null)
    return (
      <Card>
        <EmptyState icon={History} title="The flashback log is unknown">
          The engine of this instance has no flashback log, or its database postgres lacks the extension. As
          its owner run <code className="font-mono">CREATE EXTENSION flashback_log</code> there.
        </EmptyState>
      </Card>
    )
  return (
    <>
      {problem}
      <Tables log={read.log} window={window} onTurnOn={onTurnOn}>
        {read.log.state === 'off' ? null : <WindowCard log={read.log} observedAt={read.observedAt} />}
      </Tables>
    </>
  )
}

/** The flashback itself where there is a window, else why there is none; and what flashbacks made, window or not. */
function Tables({
  log,
  window,
  onTurnOn,
  children,
}: {
  log: FlashbackLog
  window: ReturnType<typeof useWindow>
  onTurnOn: (changes: SettingChange[]) => void
  children: ReactNode
}) {
  const [target, setTarget] = useTarget()
  const tables = useTables(target.database, '')
  const database = target.database ?? tables.data?.database ?? null
  const results = useResults(database)
  const flashed = useOrdered(target.flashback)
  const made = FlashbackMade.safeParse(flashed?.operation?.result).data ?? null
  // an agent that does not answer is reported at the top of the page
  if (window.fault && !tables.data) return children
  return (
    <>
      {log.oldestAt === null ? (
        <NoWindow log={log} onTurnOn={onTurnOn} />
      ) : (
        <FlashbackCard
          target={target}
          database={database}
          window={window}
          results={results}
          flashed={flashed}
          onTarget={setTarget}
        />
      )}
      {database === null ? null : (
        <>
          {log.oldestAt === null && !results.results?.length ? null : (
            <ResultList
              database={database}
              results={results}
              except={made?.resultName ?? null}
              above={window.fault}
            />
          )}
          {log.state === 'off' ? null : (
            <LostTables database={database} above={window.fault} onTarget={setTarget} />
          )}
        </>
      )}
      {children}
      <RestoreCard database={database} />
    </>
  )
}

/** Why no table can be flashed back, and what to do. */
function NoWindow({ log, onTurnOn }: { log: FlashbackLog; onTurnOn: (changes: SettingChange[]) => void }) {
  const { pendingRestart } = useInstance()
  if (log.state !== 'off')
    return (
      <Alert tone="warn" title="No table can be flashed back yet" actions={<ToRestoreCard />}>
        The flashback log is on, and its window begins when the next checkpoint is complete. Older moments
        need a base backup and its WAL archive.
      </Alert>
    )
  if (pendingRestart.includes('polar_enable_flashback_log'))
    return (
      <Alert tone="warn" title="The flashback log waits for a restart">
        It is set, and begins when the instance restarts.
      </Alert>
    )
  return <TurnOnCard onTurnOn={onTurnOn} />
}
