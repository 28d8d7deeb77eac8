'use client'
import type { SettingChange } from '@floe/domain'
import { Alert, Card, EmptyState, FaultAlert, SkeletonRows } from '@floe/ui'
import { History } from 'lucide-react'
import { useState } from 'react'
import { useInstance } from '../instance/instance-context'
import { ReviewDialog } from '../setting/review'
import { MemberWindows } from './member-windows'
import { TurnOnCard } from './turn-on-card'
import { useWindow } from './use-window'
import { WindowCard } from './window-card'

/** How far back the tables of an instance can be flashed back, or how that is turned on. */
export function Flashback() {
  const { instanceId, cluster } = useInstance()
  const [turningOn, setTurningOn] = useState<SettingChange[] | null>(null)
  return (
    <div className="flex flex-col gap-3">
      <OwnWindow onTurnOn={setTurningOn} />
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

function OwnWindow({ onTurnOn }: { onTurnOn: (changes: SettingChange[]) => void }) {
  const { state, name, pendingRestart, flashback, observedAt } = useInstance()
  const window = useWindow()
  const { fault, retry } = window
  // an agent that does not answer now has reported before
  const read = window.read ?? (fault && flashback && observedAt ? { log: flashback, observedAt } : null)
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
  if (read.log.state === 'off')
    return (
      <>
        {problem}
        {pendingRestart.includes('polar_enable_flashback_log') ? (
          <Alert tone="warn" title="The flashback log waits for a restart">
            It is set, and begins when the instance restarts.
          </Alert>
        ) : (
          <TurnOnCard onTurnOn={onTurnOn} />
        )}
      </>
    )
  return (
    <>
      {problem}
      <WindowCard log={read.log} observedAt={read.observedAt} window={window} />
    </>
  )
}
