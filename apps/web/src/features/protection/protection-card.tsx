'use client'
import { protectionWords } from '@floe/domain'
import { Age, Badge, Card, FaultAlert, SkeletonRows } from '@floe/ui'
import { useQuery } from '@tanstack/react-query'
import { useTRPC } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'
import { useInstance } from '../instance/instance-context'

const everyMs = 5_000
const pages = new Intl.NumberFormat('en')

/** What protects the instance against pages that a crash tears: images, a standby, nothing, or a person's override. */
export function ProtectionCard() {
  const { instanceId } = useInstance()
  const trpc = useTRPC()
  const query = useQuery(trpc.protection.read.queryOptions({ instanceId }, { refetchInterval: everyMs }))
  if (!query.data)
    return query.error ? (
      <FaultAlert fault={faultOf(query.error)} onRetry={() => void query.refetch()} className="mb-3" />
    ) : (
      <Card title="Torn pages" className="mb-3">
        <SkeletonRows rows={1} label="Asking the instance" />
      </Card>
    )
  const { protection, observedAt } = query.data
  const stale = query.error !== null
  const description = (
    <>
      What a page torn by a crash is restored from. Asked <Age at={observedAt} />.
    </>
  )
  if (!protection)
    return (
      <Card title="Torn pages" description={description} className="mb-3">
        <p className="text-sm text-ink-muted">
          Unknown: the database postgres of this instance lacks the extension. As its owner run{' '}
          <code className="font-mono">CREATE EXTENSION page_repair</code> there.
        </p>
      </Card>
    )
  const words = protectionWords[protection.state]
  const { recovery } = protection
  return (
    <Card title="Torn pages" description={description} className={stale ? 'mb-3 opacity-60' : 'mb-3'}>
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <Badge tone={words.tone}>{words.title}</Badge>
        <span className="text-sm text-ink-muted">
          since <Age at={protection.since} />
        </span>
      </div>
      <p className="mt-2 max-w-3xl text-sm text-ink-muted">{words.meaning}</p>
      {protection.why ? <p className="mt-1 text-sm">{protection.why}</p> : null}
      {!protection.fullPageWrites && protection.imagesInForce ? (
        <p className="mt-1 text-sm">
          <code className="font-mono">full_page_writes</code> is off, but images are written: the guard asks
          for them.
        </p>
      ) : null}
      {protection.sources.length > 0 ? (
        <ul className="mt-3 divide-y divide-line border-t border-line text-sm">
          {protection.sources.map((source) => (
            <li key={source.source} className="flex flex-wrap items-center gap-x-3 gap-y-1 py-2">
              <span className="font-mono">{source.source}</span>
              <Badge tone={source.healthy ? 'good' : 'warn'}>
                {source.healthy ? 'healthy' : 'not healthy'}
              </Badge>
              <span className="text-ink-muted">
                {source.healthy ? `flushed ${source.flushLsn ?? '–'}` : source.why}
              </span>
            </li>
          ))}
        </ul>
      ) : null}
      {recovery ? (
        <p className="mt-3 border-t border-line pt-2 text-sm">
          Last recovery <Age at={recovery.startedAt} />: {pages.format(recovery.checked)} pages checked,{' '}
          {pages.format(recovery.torn)} torn, {pages.format(recovery.repaired)} repaired.
        </p>
      ) : null}
    </Card>
  )
}
