'use client'
import { Alert, Button, Card, FaultAlert } from '@floe/ui'
import { useQuery } from '@tanstack/react-query'
import { ShieldCheck } from 'lucide-react'
import { useTRPC } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'

/** Computes the chain of hashes again, on demand: it reads every event. */
export function AuditChain() {
  const trpc = useTRPC()
  const query = useQuery(trpc.audit.verify.queryOptions({}, { enabled: false, retry: false }))
  const verified = query.data
  return (
    <Card
      title="Integrity"
      className="mt-4"
      actions={
        <Button size="small" busy={query.isFetching} onClick={() => void query.refetch()}>
          <ShieldCheck aria-hidden />
          Verify
        </Button>
      }
    >
      <p className="text-sm text-ink-muted">
        Each event includes the SHA-256 hash of the one before it: changing or removing an event breaks the
        chain. Anyone who controls the database could rebuild the whole chain. Store the newest hash
        elsewhere, and check later that it is still there:{' '}
        <code className="font-mono text-xs">./floe audit verify --head HASH</code>.
      </p>
      {query.error ? (
        <FaultAlert fault={faultOf(query.error)} onRetry={() => void query.refetch()} className="mt-3" />
      ) : verified ? (
        <Alert
          tone={verified.broken ? 'bad' : 'good'}
          className="mt-3"
          title={
            verified.broken
              ? verified.broken.message
              : `${verified.rows.toLocaleString('en')} events verified: none was changed, none is missing`
          }
        >
          <span className="break-all">
            Event {verified.headId} has the newest hash:{' '}
            <code className="font-mono text-xs">{verified.headHash}</code>
          </span>
        </Alert>
      ) : null}
    </Card>
  )
}
