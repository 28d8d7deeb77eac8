'use client'
import { Age, Alert, Button, Card, Checkbox, ConfirmDialog, FaultAlert, SkeletonRows } from '@floe/ui'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useId, useState } from 'react'
import type { RouterOutputs } from '@/server/api'
import { useTRPC } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'
import { useMayChange, viewerHint } from '../console/account-context'
import { OperationLink } from '../operation/operation-link'

type Host = RouterOutputs['host']['show']['host']
type Shown = RouterOutputs['host']['upgradePlan']
type Plan = Shown['plan']
type Upgrade = NonNullable<Shown['last']>

/** The engine that is installed on a host, who runs another build of it, and the plan that moves them. */
export function EngineCard({ host }: { host: Host }) {
  const trpc = useTRPC()
  const query = useQuery(
    trpc.host.upgradePlan.queryOptions({ hostId: host.hostId }, { refetchInterval: 2_000 }),
  )
  const { data } = query
  const installed = data?.plan.build ?? host.facts?.engineBuild ?? null
  return (
    <Card
      title="Engine"
      description={
        installed === null ? (
          'Its agent does not report the installed build.'
        ) : (
          <>
            Installed: <span className="font-mono">{installed}</span>. New instances get it; others keep
            theirs until they are moved.
          </>
        )
      }
      actions={data ? <Actions host={host} shown={data} /> : null}
    >
      {data ? (
        <div className="flex flex-col gap-3">
          {data.last ? <Newest upgrade={data.last} /> : null}
          <PlanView plan={data.plan} open={data.last !== null && data.last.endedAt === null} />
        </div>
      ) : query.error ? (
        <FaultAlert fault={faultOf(query.error)} onRetry={() => void query.refetch()} />
      ) : (
        <SkeletonRows label="Loading the plan" />
      )}
    </Card>
  )
}

const movable = (plan: Plan) => plan.blocker === null && plan.clusters.some(({ steps }) => steps.length > 0)

function Actions({ host, shown: { plan, last } }: { host: Host; shown: Shown }) {
  const trpc = useTRPC()
  const queries = useQueryClient()
  const mayChange = useMayChange()
  const switchBackId = useId()
  const [asking, setAsking] = useState(false)
  const [switchBack, setSwitchBack] = useState(false)
  const seen = () => void queries.invalidateQueries(trpc.host.pathFilter())
  const upgrade = useMutation(
    trpc.host.upgrade.mutationOptions({
      onSuccess: () => setAsking(false),
      onSettled: seen,
    }),
  )
  const cancel = useMutation(trpc.host.cancelUpgrade.mutationOptions({ onSettled: seen }))
  const { hostId, name } = host
  const open = last !== null && last.endedAt === null
  const restarted = plan.clusters.some(({ steps }) => steps.some((s) => s.action === 'restart-primary'))
  const switched = plan.clusters.some(({ steps }) => steps.some((s) => s.action === 'switchover'))
  const because = !mayChange ? viewerHint : movable(plan) ? undefined : 'There is nothing to move.'
  return (
    <>
      {open ? (
        <Button
          busy={cancel.isPending}
          disabled={!mayChange || last.cancelAskedAt !== null}
          title={mayChange ? undefined : viewerHint}
          onClick={() => cancel.mutate({ hostId })}
        >
          {last.cancelAskedAt === null ? 'Cancel upgrade' : 'Being cancelled'}
        </Button>
      ) : (
        <Button disabled={because !== undefined} title={because} onClick={() => setAsking(true)}>
          Upgrade instances
        </Button>
      )}
      {/* there all the time: it must outlive what it brings about */}
      <ConfirmDialog
        open={asking}
        onOpenChange={(next) => {
          setAsking(next)
          if (!next) upgrade.reset()
        }}
        title={`Upgrade the instances of ${name}?`}
        confirmLabel="Upgrade instances"
        typedName={name}
        busy={upgrade.isPending}
        fault={upgrade.error ? faultOf(upgrade.error) : null}
        onConfirm={() => upgrade.mutate({ hostId, build: plan.build ?? '', confirmName: name, switchBack })}
      >
        <p>
          What the plan lists is done, one cluster after the other. An instance that does not start on the
          installed engine is started on its former one, and the upgrade ends there.
        </p>
        {restarted ? (
          <p className="font-medium text-ink">
            Clients of instances without a standby that can take over are disconnected and cannot work until
            their instance has started again.
          </p>
        ) : null}
        {switched ? (
          <div className="flex items-start gap-2">
            <Checkbox
              id={switchBackId}
              className="mt-0.5"
              checked={switchBack}
              onCheckedChange={(checked) => setSwitchBack(checked === true)}
            />
            <label htmlFor={switchBackId}>
              Switch over again afterwards, so that primaries are on this host as before
            </label>
          </div>
        ) : null}
      </ConfirmDialog>
    </>
  )
}

/** The newest upgrade that was asked for: how far it is, or how it ended. */
function Newest({ upgrade }: { upgrade: Upgrade }) {
  const { ordered, endedAt, fault, message, actorName, build } = upgrade
  const lines = ordered.map(({ operationId, cluster, back, state, why }) => (
    <li key={operationId}>
      <OperationLink operationId={operationId}>
        {back ? `Switch ${cluster} back` : `Cluster ${cluster}`}
      </OperationLink>
      : {state ?? 'at work'}
      {why ? `, left as it is: ${why}` : ''}
    </li>
  ))
  return (
    <div className="flex flex-col gap-2 text-sm">
      {fault ? <FaultAlert fault={fault} tone="warn" /> : null}
      <p className="break-words text-ink-muted">
        {endedAt === null ? 'At work: an' : 'The last'} upgrade to <span className="font-mono">{build}</span>,
        asked for by {actorName} <Age at={upgrade.createdAt} />
        {endedAt === null ? '' : fault ? '; it ended before its end' : '; it came to its end'}.
      </p>
      {message === null || endedAt !== null ? null : <p className="text-ink-muted">It waits: {message}.</p>}
      {upgrade.packages ? (
        <p className="break-words text-ink-muted">
          {upgrade.installed ? 'Its packages were installed: ' : 'It brings packages first: '}
          {upgrade.packages.map(({ name, version }, i) => (
            <span key={name}>
              {i > 0 ? ', ' : ''}
              <span className="font-mono break-all">
                {name} {version}
              </span>
            </span>
          ))}
          .
        </p>
      ) : null}
      {lines.length > 0 ? <ul className="list-disc pl-5">{lines}</ul> : null}
    </div>
  )
}

function PlanView({ plan, open }: { plan: Plan; open: boolean }) {
  const { blocker, clusters } = plan
  // the page says already that it is silent
  if (blocker?.code === 'host.silent')
    return (
      <p className="text-sm text-ink-muted">
        What its instances run is not known while its agent does not answer.
      </p>
    )
  if (blocker) return <FaultAlert fault={blocker} tone="warn" />
  const moved = clusters.filter(({ steps }) => steps.length > 0)
  const left = clusters.flatMap((c) => c.left)
  return (
    <div className="flex flex-col gap-3 text-sm">
      {moved.length === 0 && left.length === 0 ? (
        <p className="text-ink-muted">Every instance runs on the installed engine.</p>
      ) : null}
      {moved.length > 0 ? (
        <p className="text-ink-muted">
          {open ? 'Left to do, as things are now:' : 'An upgrade would do this, one step after the other:'}
        </p>
      ) : null}
      {moved.map(({ cluster, steps }) => (
        <div key={cluster}>
          <h3 className="text-xs text-ink-muted">Cluster {cluster}</h3>
          <ol className="mt-1 list-decimal pl-5 break-words">
            {steps.map(({ action, member, text }) => (
              <li key={`${action} ${member}`} className="py-0.5">
                {text}
              </li>
            ))}
          </ol>
        </div>
      ))}
      {left.length > 0 ? (
        <Alert tone="warn" title="Left as they are">
          <ul className="list-disc pl-4 break-words">
            {left.map(({ member, why }) => (
              <li key={member}>
                {member}: {why}
              </li>
            ))}
          </ul>
        </Alert>
      ) : null}
    </div>
  )
}
