import { FLASHBACK_LOG_SOURCE } from '@floe/domain'
import { Alert } from '@floe/ui'
import type { RouterOutputs } from '@/server/api'

type Protection = Pick<
  NonNullable<RouterOutputs['instance']['show']['protection']>,
  'imagesInForce' | 'sources'
>

/** What the card offers to change. */
export type ProtectionChange = 'images on' | 'images off' | 'guard on'

/** What turning full-page writes on or off, or the guard on again, will do. */
export function WhatImagesDo({ to, protection }: { to: ProtectionChange; protection: Protection }) {
  const healthy = protection.sources
    .filter((s) => s.healthy)
    .map((s) => (s.source === FLASHBACK_LOG_SOURCE ? 'its own flashback log' : (s.member ?? s.source)))
  // a standby replays WAL with the images that its primary wrote
  const ofStandby =
    protection.imagesInForce === null ? (
      <p>
        Nothing changes now: a standby writes no WAL, and its primary’s setting decides whether the WAL has
        page images. The change takes effect once the standby is promoted.
      </p>
    ) : null
  // the guard of a standby is never what leaves it exposed
  if (to === 'guard on')
    return (
      <p>
        Full-page writes stay off while a source is healthy. When none is, the guard re-enables full-page
        images after polar_page_repair_grace, and ends them once a source has been healthy for as long.
      </p>
    )
  if (to === 'images on')
    return (
      <>
        {ofStandby}
        <p>
          From {ofStandby ? 'then' : 'its next reload'} on the instance writes an image of each page at its
          first change after a checkpoint. It writes more WAL, and needs no standby to restore a torn page.
        </p>
      </>
    )
  if (healthy.length === 0)
    return (
      <Alert tone="warn" title="No page repair source is healthy">
        A torn page could not be repaired after a crash.
      </Alert>
    )
  if (ofStandby)
    return (
      <>
        {ofStandby}
        <p>
          From then on, the WAL contains no full-page images while a source is healthy: a torn page is fetched
          from the instance’s own standbys or its flashback log. While none is healthy the guard re-enables
          full-page images.
        </p>
      </>
    )
  return (
    <>
      <p>
        The WAL no longer contains full-page images. After a crash a torn page is fetched from{' '}
        <strong className="text-ink">{healthy.join(', then ')}</strong> before the instance starts.
      </p>
      <p>
        While no source is healthy the guard re-enables full-page images after polar_page_repair_grace, and
        opens an incident. pg_rewind cannot read from this instance meanwhile: a former primary is rebuilt
        from a new copy.
      </p>
    </>
  )
}
