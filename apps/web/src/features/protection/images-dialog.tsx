'use client'
import { Dialog } from '@floe/ui'
import type { RouterOutputs } from '@/server/api'
import { useInstance } from '../instance/instance-context'
import { Review } from '../setting/review'
import { type ProtectionChange, WhatImagesDo } from './what-images-do'

type Protection = NonNullable<RouterOutputs['instance']['show']['protection']>

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
            <WhatImagesDo to={to} protection={protection} />
          </div>
          <Review
            scope={{ instanceId }}
            wanted={{ changes: [words[to].change] }}
            settings={[]}
            onBack={onClose}
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
