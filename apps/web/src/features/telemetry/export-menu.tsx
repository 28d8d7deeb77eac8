'use client'
import type { MetricName } from '@floe/telemetry'
import { Button, chartsToPng, download, formatTime, Menu, MenuItem, useToast } from '@floe/ui'
import { Download, FileDown, ImageDown } from 'lucide-react'
import type { RefObject } from 'react'

/** Saves what the page shows: all values as CSV, or the charts in view as one picture. */
export function ExportMenu({
  instance,
  from,
  to,
  metrics,
  figures,
  charts,
  onMountAll,
}: {
  instance: { instanceId: string; name: string }
  from: number
  to: number
  metrics: readonly MetricName[]
  figures: RefObject<HTMLElement | null>
  /** How many charts the page has; those out of view are drawn for the picture only. */
  charts: number
  onMountAll: (mounted: boolean) => void
}) {
  const toast = useToast()
  const stamp = new Date(to).toISOString().slice(0, 19).replaceAll(':', '')
  const csv = new URLSearchParams({
    instanceId: instance.instanceId,
    from: String(Math.round(from)),
    to: String(Math.round(to)),
    metrics: metrics.join(','),
  })
  async function savePng() {
    onMountAll(true)
    try {
      const drawn = await waitForFigures(() => figures.current, charts)
      const picture = await chartsToPng(drawn, {
        title: instance.name,
        subtitle: `${formatTime(from)} – ${formatTime(to)}`,
      })
      download(picture, `${instance.name}-${stamp}.png`)
    } catch (error) {
      toast({
        tone: 'bad',
        title: 'could not create the picture',
        description: error instanceof Error ? error.message : String(error),
      })
    } finally {
      onMountAll(false)
    }
  }
  return (
    <Menu
      trigger={
        <Button>
          <Download aria-hidden />
          Export
        </Button>
      }
    >
      <MenuItem asChild>
        <a href={`/api/export/samples.csv?${csv}`} download={`${instance.name}-${stamp}.csv`}>
          <FileDown aria-hidden />
          Values as CSV
        </a>
      </MenuItem>
      <MenuItem onSelect={() => void savePng()}>
        <ImageDown aria-hidden />
        Charts as PNG
      </MenuItem>
    </Menu>
  )
}

/** The figures as soon as all of them are settled (drawn, or saying why not); after 3 s those that there are. */
async function waitForFigures(root: () => HTMLElement | null, charts: number): Promise<HTMLElement[]> {
  const end = performance.now() + 3_000
  for (;;) {
    const found = [...(root()?.querySelectorAll<HTMLElement>('figure') ?? [])]
    const settled = found.filter((figure) => figure.querySelector('svg.recharts-surface, p, table'))
    if (settled.length >= charts || performance.now() > end) return found
    await new Promise((resolve) => requestAnimationFrame(resolve))
  }
}
