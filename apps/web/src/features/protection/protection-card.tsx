'use client'
import {
  apartTitle,
  exactBytes,
  FLASHBACK_LOG_SOURCE,
  NO_PAGE_REPAIR,
  powerFailureCover,
  protectionWords,
  sharesFailure,
} from '@floe/domain'
import { Age, Badge, Button, Card } from '@floe/ui'
import Link from 'next/link'
import { useState } from 'react'
import type { RouterOutputs } from '@/server/api'
import { useMayChange, viewerHint } from '../console/account-context'
import { useInstance } from '../instance/instance-context'
import { ImagesDialog } from './images-dialog'
import type { ProtectionChange } from './what-images-do'

type Protection = NonNullable<RouterOutputs['instance']['show']['protection']>
type Source = Protection['sources'][number]

/** What protects the instance against pages that a crash tears: images, a standby, nothing, or a person's override. */
export function ProtectionCard({ className: place = '' }: { className?: string }) {
  const { protection, observedAt, state, stale, name } = useInstance()
  const mayChange = useMayChange()
  const [switching, setSwitching] = useState<ProtectionChange | null>(null)
  const className = stale ? `${place} opacity-60` : place
  const description = (
    <>
      What a page torn by a crash is repaired from
      {observedAt === null ? (
        '.'
      ) : (
        <>
          . Seen <Age at={observedAt} />.
        </>
      )}
    </>
  )
  if (!protection)
    return (
      <Card title="Torn pages" description={description} className={className}>
        <p className="text-sm text-ink-muted">
          {state === 'running' ? (
            <>
              Unknown: the database postgres of this instance lacks the extension, or its state was not
              reported yet. As its owner run <code className="font-mono">CREATE EXTENSION page_repair</code>{' '}
              there.
            </>
          ) : (
            'Known while the instance runs.'
          )}
        </p>
      </Card>
    )
  const words = protectionWords(protection)
  const cover = powerFailureCover(protection)
  const { recovery, sources } = protection
  const first = sources.find((s) => s.healthy)
  const to = protection.fullPageWrites ? 'off' : 'on'
  return (
    <Card
      id="torn-pages"
      title="Torn pages"
      description={description}
      className={className}
      actions={
        <>
          {protection.state === 'overridden' ? (
            <Button
              disabled={!mayChange || state !== 'running'}
              title={mayChange ? undefined : viewerHint}
              onClick={() => setSwitching('guard on')}
            >
              Turn the guard on
            </Button>
          ) : null}
          <Button
            disabled={!mayChange || state !== 'running'}
            title={mayChange ? undefined : viewerHint}
            onClick={() => setSwitching(`images ${to}`)}
          >
            Turn full-page writes {to}
          </Button>
        </>
      }
    >
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <Badge tone={words.tone}>
          {protection.state === 'protected' && first && first.source !== FLASHBACK_LOG_SOURCE
            ? `Protected by ${nameOf(first)}`
            : words.title}
        </Badge>
        <span className="text-sm text-ink-muted">
          since <Age at={protection.since} />
        </span>
        {cover ? <Badge tone={cover.tone}>{cover.title}</Badge> : null}
      </div>
      <p className="mt-2 max-w-3xl text-sm text-ink-muted">{words.meaning}</p>
      {cover ? <p className="mt-1 max-w-3xl text-sm text-ink-muted">{cover.meaning}</p> : null}
      {protection.why && protection.state !== 'protected' ? (
        <p className="mt-1 text-sm break-words">{protection.why}</p>
      ) : null}
      {!protection.fullPageWrites && protection.imagesInForce ? (
        <p className="mt-1 text-sm">
          <code className="font-mono">full_page_writes</code> is off, but full-page images are written: the
          guard has enabled them.
        </p>
      ) : null}
      {sources.length > 0 ? (
        <ul
          aria-label="Page repair sources"
          className="mt-3 divide-y divide-line border-t border-line text-sm"
        >
          {sources.map((source) => (
            <li key={source.source} className="flex flex-wrap items-center gap-x-3 gap-y-1 py-2">
              <span className="font-medium">{nameOf(source)}</span>
              {source.source === FLASHBACK_LOG_SOURCE ? null : (
                <span className="font-mono text-xs text-ink-muted">{source.source}</span>
              )}
              <Badge tone={source.healthy ? 'good' : 'warn'}>
                {source.healthy ? 'healthy' : 'not healthy'}
              </Badge>
              <Badge tone={sharesFailure(source.apart) ? 'warn' : 'neutral'}>
                {apartTitle(source.apart)}
              </Badge>
              <span className="text-ink-muted">{source.healthy ? lagOf(source) : source.why}</span>
            </li>
          ))}
        </ul>
      ) : (
        <p className="mt-3 border-t border-line pt-2 text-sm text-ink-muted">
          This instance has no page repair source.{' '}
          <Link className="text-accent underline" href={`/instances/${name}/replication`}>
            Add a standby
          </Link>
          ; it becomes a source automatically.
        </p>
      )}
      {recovery ? (
        <p className="mt-3 border-t border-line pt-2 text-sm">
          Last recovery <Age at={recovery.start?.beganAt ?? recovery.startedAt} />
          {recovery.policy === NO_PAGE_REPAIR
            ? ': page repair checked no page'
            : `: ${count(recovery.checked)} pages checked, ${count(recovery.torn)} torn, ${count(recovery.repaired)} repaired${
                recovery.cleared ? `, ${count(recovery.cleared)} of maps cleared` : ''
              }`}
          .
        </p>
      ) : null}
      <ImagesDialog to={switching} protection={protection} onClose={() => setSwitching(null)} />
    </Card>
  )
}

const pages = new Intl.NumberFormat('en')
const count = (n: number) => pages.format(n)
export const nameOf = (source: Pick<Source, 'member' | 'source'>) => source.member ?? source.source

function lagOf(source: Source): string {
  if (source.lagBytes === null) return source.flushLsn ? `flushed ${source.flushLsn}` : ''
  return source.lagBytes === 0 ? 'nothing behind' : `${exactBytes(source.lagBytes)} behind`
}
