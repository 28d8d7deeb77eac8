'use client'
import { apartOf, apartTitle, automaticPageRepair, type InstanceId, sharesFailure } from '@floe/domain'
import { Badge, Button, Card, Checkbox } from '@floe/ui'
import { useId, useState } from 'react'
import { useMayChange, viewerHint } from '../console/account-context'
import { newIdempotencyKey } from '../console/idempotency-key'
import { Refusal } from '../operation/refusal'
import { type ClusterDetail, useClusterVerbs } from './use-cluster'

/** Which standbys give the primary pages that a crash tore. */
export function PageRepairCard({ detail }: { detail: ClusterDetail }) {
  const { cluster } = detail
  const standbys = cluster.members.filter((m) => m.instanceId !== cluster.primaryInstanceId)
  const current = cluster.pageRepair ?? automaticPageRepair
  const isSource = (id: InstanceId) => current.enabled && !current.excluded.includes(id)
  const [chosen, setChosen] = useState<InstanceId[]>(() => standbys.map((m) => m.instanceId).filter(isSource))
  const verbs = useClusterVerbs()
  const mayChange = useMayChange()
  const id = useId()
  const busy = detail.openOperation !== null
  const unchanged = standbys.every((m) => isSource(m.instanceId) === chosen.includes(m.instanceId))
  const primary = cluster.members.find((m) => m.instanceId === cluster.primaryInstanceId)
  const seen = primary?.protection ?? null
  const healthOf = (m: (typeof standbys)[number]) =>
    seen?.sources.find((s) => s.source === `${m.connection?.host}:${m.connection?.port}/postgres`)
  const wired = chosen.every((c) => standbys.some((m) => m.instanceId === c && healthOf(m)))
  return (
    <Card
      title="Page repair sources"
      description="polar_page_repair_sources on every member. Needed before full_page_writes can be off."
    >
      <div className="flex flex-col gap-3">
        <fieldset className="flex flex-col gap-2">
          <legend className="mb-1 text-sm text-ink-muted">
            After a crash the primary fetches torn pages from these standbys; a standby fetches its own from
            the primary first, then from them. New standbys are added automatically.
          </legend>
          {standbys.map((m) => {
            const health = healthOf(m)
            const apart = apartOf(primary, { source: m.name }, m)
            return (
              <div key={m.instanceId} className="flex flex-wrap items-center gap-2 text-sm">
                <Checkbox
                  id={`${id}-${m.instanceId}`}
                  checked={chosen.includes(m.instanceId)}
                  onCheckedChange={(on) =>
                    setChosen((before) =>
                      on === true ? [...before, m.instanceId] : before.filter((c) => c !== m.instanceId),
                    )
                  }
                />
                <label htmlFor={`${id}-${m.instanceId}`}>
                  {m.name} <span className="text-ink-muted">on {m.hostName}</span>
                </label>
                {health ? (
                  <Badge tone={health.healthy ? 'good' : 'warn'}>
                    {health.healthy ? 'healthy' : 'not healthy'}
                  </Badge>
                ) : null}
                {apart ? (
                  <Badge tone={sharesFailure(apart) ? 'warn' : 'neutral'}>{apartTitle(apart)}</Badge>
                ) : null}
                {health && !health.healthy && health.why ? (
                  <span className="text-ink-muted">{health.why}</span>
                ) : null}
              </div>
            )
          })}
        </fieldset>
        {chosen.length === 0 && seen && !seen.fullPageWrites ? (
          <p className="text-sm text-bad">
            The primary omits full-page images: without a source the guard would re-enable them.
          </p>
        ) : null}
        {verbs.pageRepair.error ? <Refusal error={verbs.pageRepair.error} /> : null}
        <div>
          <Button
            variant="primary"
            busy={verbs.pageRepair.isPending}
            disabled={!mayChange || busy || (unchanged && wired)}
            title={mayChange ? (busy ? 'Another operation has not ended yet.' : undefined) : viewerHint}
            onClick={() =>
              verbs.pageRepair.mutate({
                clusterId: cluster.clusterId,
                pageRepair: {
                  enabled: chosen.length > 0,
                  excluded:
                    chosen.length > 0
                      ? standbys.map((m) => m.instanceId).filter((s) => !chosen.includes(s))
                      : [],
                },
                idempotencyKey: newIdempotencyKey(),
              })
            }
          >
            {unchanged && !wired ? 'Set up sources' : 'Change sources'}
          </Button>
        </div>
      </div>
    </Card>
  )
}
