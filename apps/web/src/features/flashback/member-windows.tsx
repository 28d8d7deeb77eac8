'use client'
import { type FlashbackLog, flashbackWords, shownRole } from '@floe/domain'
import { Age, Badge, Card, FaultAlert } from '@floe/ui'
import Link from 'next/link'
import { faultOf } from '@/trpc/fault'
import { useCluster } from '../cluster/use-cluster'
import { useInstance } from '../instance/instance-context'

/** How far back the other members reach: after a switchover the new primary answers for its own window. */
export function MemberWindows() {
  const { cluster, instanceId } = useInstance()
  const several = cluster.members > 1
  const { data, error, refetch } = useCluster({ enabled: several, everyMs: 10_000 })
  if (!several) return null
  if (error && !data) return <FaultAlert fault={faultOf(error)} onRetry={() => void refetch()} />
  const others = data?.cluster.members.filter((m) => m.instanceId !== instanceId) ?? []
  if (others.length === 0) return null
  return (
    <Card
      title="Windows of the other members"
      description="A table is flashed back on the primary, from its own window. After a switchover or a failover the new primary has its own, as far as it reaches."
      bodyClassName="p-0"
    >
      <ul aria-label="Windows of the other members" className="divide-y divide-line text-sm">
        {others.map((m) => (
          <li key={m.instanceId} className="flex flex-wrap items-center gap-x-3 gap-y-1 px-4 py-2">
            <Link className="font-medium text-accent hover:underline" href={`/instances/${m.name}/flashback`}>
              {m.name}
            </Link>
            <span className="text-ink-muted">{shownRole(m)}</span>
            <WindowOf log={m.flashback ?? null} known={m.state === 'running'} />
          </li>
        ))}
      </ul>
    </Card>
  )
}

function WindowOf({ log, known }: { log: FlashbackLog | null; known: boolean }) {
  if (!log || !known) return <span className="text-ink-muted">unknown</span>
  const words = flashbackWords(log)
  return (
    <>
      <Badge tone={words.tone}>{words.title}</Badge>
      {log.oldestAt === null ? null : (
        <span className="text-ink-muted">
          reaches back to <Age at={log.oldestAt} />
        </span>
      )}
    </>
  )
}
