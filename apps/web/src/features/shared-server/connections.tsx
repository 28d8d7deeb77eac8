'use client'
import {
  membersOfOneHost,
  type SettingChange,
  type SettingScope,
  type SharedServer,
  sharedServerSettings,
  sharedServerState,
} from '@floe/domain'
import { Alert, Badge, Card, EmptyState, FaultAlert, SkeletonRows } from '@floe/ui'
import { Share2 } from 'lucide-react'
import { useState } from 'react'
import { useCluster } from '../cluster/use-cluster'
import { useStandingFault } from '../console/use-standing-fault'
import { useInstance } from '../instance/instance-context'
import { ConfirmedAlert, type ConfirmedChanges } from '../setting/confirmed-changes'
import { ReviewDialog } from '../setting/review'
import { useSettings } from '../setting/use-settings'
import { MembersCard } from './members-card'
import { PinnedCard } from './pinned-card'
import { PoolsCard } from './pools-card'
import { SessionCharts } from './session-charts'
import { SessionsCard } from './sessions-card'
import { SettingsCard } from './settings-card'
import { TurnOnCard } from './turn-on-card'
import { useSharedServer } from './use-shared-server'

/** Whose sessions share backends, whose do not and why; Shared Server is turned on and off here. */
export function Connections() {
  const { instanceId, cluster } = useInstance()
  const several = cluster.members > 1
  const read = useCluster({ enabled: several, everyMs: 5_000 })
  const members = (several && read.data?.cluster.members) || null
  const fault = useStandingFault(read, cluster.clusterId)
  const [chosen, setChosen] = useState<boolean | null>(null)
  // on one host each needs a port of its own, so that nothing can be asked of all at once
  const everyMember = members !== null && (chosen ?? membersOfOneHost(members) === null)
  const [reviewing, setReviewing] = useState<{ scope: SettingScope; changes: SettingChange[] } | null>(null)
  const [applied, setApplied] = useState<ConfirmedChanges | null>(null)
  const review = (changes: SettingChange[]) => {
    setApplied(null)
    setReviewing({ scope: everyMember ? { clusterId: cluster.clusterId } : { instanceId }, changes })
  }
  return (
    <div className="flex flex-col gap-3">
      <ConfirmedAlert changes={applied} />
      {several ? (
        <MembersCard
          read={{
            members,
            count: cluster.members,
            readAt: read.data?.now ?? null,
            fault,
            retry: () => void read.refetch(),
          }}
          everyMember={everyMember}
          onEveryMember={setChosen}
        />
      ) : null}
      <Page held={several && members === null ? membersUnknown : null} onReview={review} />
      {/* not in a card: the instance may restart meanwhile, and the card is then away */}
      <ReviewDialog
        scope={reviewing?.scope ?? { instanceId }}
        wanted={reviewing ? { changes: reviewing.changes } : null}
        settings={[]}
        onClose={() => setReviewing(null)}
        onApplied={setApplied}
      />
    </div>
  )
}

const staleHint = 'What is shown may no longer hold: changes wait until it can be read again.'
const membersUnknown = 'The members of the cluster are not known yet: a change may be for all of them.'

/** `held`: why nothing can be changed now. */
type Reviewing = { held: string | null; onReview: (changes: SettingChange[]) => void }

function Page({ held, onReview }: Reviewing) {
  const { state, name, hostName, hostState, sharedServer, observedAt } = useInstance()
  const { read, fault, retry } = useSharedServer()
  if (state === 'unknown')
    return (
      <Alert tone="warn" title={`Whether ${name} runs is unknown`}>
        {hostState === 'online'
          ? `The agent of host “${hostName}” does not know it. `
          : `The agent of host “${hostName}” does not answer: check "./floe status" there. `}
        {sharedServer && observedAt
          ? `When last seen, ${sharedServer.port === null ? 'it had no shared port' : `its shared port was ${sharedServer.port}`}. `
          : ''}
        Its sessions are unknown.
      </Alert>
    )
  if (state !== 'running')
    return (
      <Card>
        <EmptyState icon={Share2} title={`${name} does not run`}>
          It has sessions, and can be set to share backends between them, while it runs.
        </EmptyState>
      </Card>
    )
  if (!read)
    return fault ? (
      <FaultAlert fault={fault} onRetry={retry} />
    ) : (
      <Card>
        <SkeletonRows label="Reading the sessions" />
      </Card>
    )
  return (
    <>
      {fault ? <FaultAlert fault={fault} onRetry={retry} tone="warn" /> : null}
      {read.sharedServer === null ? (
        <Card>
          <EmptyState icon={Share2} title="Shared Server is unknown">
            The engine of this instance has no Shared Server, or its database postgres lacks the extension. As
            its owner run <code className="font-mono">CREATE EXTENSION shared_server</code> there.
          </EmptyState>
        </Card>
      ) : (
        <Server
          server={read.sharedServer}
          observedAt={read.observedAt}
          stale={fault !== null}
          held={fault ? staleHint : held}
          onReview={onReview}
        />
      )}
    </>
  )
}

function Server({
  server,
  observedAt,
  stale,
  held,
  onReview,
}: Reviewing & { server: SharedServer; observedAt: number; stale: boolean }) {
  const { instanceId, pendingRestart } = useInstance()
  const settings = useSettings({ instanceId }, { names: sharedServerSettings, everyMs: 5_000 })
  const preloaded = settings.settings?.some((s) => s.name === 'polar_ss_port') ?? true
  const off = sharedServerState(server) === 'off'
  return (
    <>
      {pendingRestart.includes('polar_ss_port') ? (
        <Alert tone="warn" title="The shared port waits for a restart">
          It is set, and opens or closes when the instance restarts. <Badge tone="warn">Restart</Badge> is
          among the actions at the top of the page.
        </Alert>
      ) : null}
      {!preloaded ? (
        <Alert tone="warn" title="The module shared_server is not loaded">
          The engine loads it at its start (builtin_preload_libraries). An instance on an earlier build moves
          onto this one by a standby and a switchover.
        </Alert>
      ) : off ? (
        pendingRestart.includes('polar_ss_port') ? null : (
          <TurnOnCard held={held} onReview={onReview} />
        )
      ) : (
        <SessionsCard server={server} observedAt={observedAt} stale={stale} held={held} onReview={onReview} />
      )}
      {server.counts ? (
        <>
          <SessionCharts />
          <PinnedCard pinned={server.pinned} staleAt={stale ? observedAt : null} />
          <PoolsCard pools={server.pools} staleAt={stale ? observedAt : null} />
        </>
      ) : null}
      <SettingsCard asked={settings} />
    </>
  )
}
