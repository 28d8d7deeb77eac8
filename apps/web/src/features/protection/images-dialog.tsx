'use client'
import { Alert, Dialog } from '@floe/ui'
import type { RouterOutputs } from '@/server/api'
import { useInstance } from '../instance/instance-context'
import { Review } from '../setting/review-dialog'

type Protection = NonNullable<RouterOutputs['instance']['show']['protection']>

/** What the card offers to change. */
export type ProtectionChange = 'images on' | 'images off' | 'guard on'

/** Says what turning full-page writes on or off, or the guard on again, will do, lets the instance judge it, and does it. */
export function ImagesDialog({
  to,
  protection,
  onClose,
}: {
  /** Null keeps it shut. */
  to: ProtectionChange | null
  protection: Protection
  onClose: () => void
}) {
  const { instanceId } = useInstance()
  const healthy = protection.sources.filter((s) => s.healthy).map((s) => s.member ?? s.source)
  return (
    <Dialog
      open={to !== null}
      onOpenChange={(open) => {
        if (!open) onClose()
      }}
      title={to ? `Turn ${words[to].what}` : ''}
    >
      {to === null ? null : (
        <>
          <div className="mb-3 flex flex-col gap-2 text-sm text-ink-muted">
            {to === 'guard on' ? (
              <p>
                Full-page writes stay off while a source is healthy. When none is, the guard has images
                written, after polar_page_repair_grace, and ends them when one is back.
              </p>
            ) : to === 'images on' ? (
              <p>
                From its next reload on the instance writes an image of each page at its first change after a
                checkpoint. It writes more WAL, and needs no standby to restore a torn page.
              </p>
            ) : healthy.length > 0 ? (
              <>
                <p>
                  The WAL gets no page images any more. A page that a crash tears is taken from{' '}
                  <strong className="text-ink">{healthy.join(', then ')}</strong> before the instance starts.
                </p>
                <p>
                  While no source is healthy the guard has images written again, after
                  polar_page_repair_grace, and an incident is opened. pg_rewind cannot read from this instance
                  meanwhile: a former primary comes back by a new copy.
                </p>
              </>
            ) : (
              <Alert tone="warn" title="No source of pages is healthy">
                A page that a crash tears could not be restored.
              </Alert>
            )}
          </div>
          <Review
            instanceId={instanceId}
            changes={[words[to].change]}
            settings={[]}
            stateId={undefined}
            onClose={onClose}
            onApplied={onClose}
          />
        </>
      )}
    </Dialog>
  )
}

const words: Record<ProtectionChange, { what: string; change: { name: string; value: string } }> = {
  'images on': { what: 'full-page writes on', change: { name: 'full_page_writes', value: 'on' } },
  'images off': { what: 'full-page writes off', change: { name: 'full_page_writes', value: 'off' } },
  'guard on': { what: 'the guard on', change: { name: 'polar_page_repair_guard', value: 'on' } },
}
