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
}: {
  instance: { instanceId: string; name: string }
  from: number
  to: number
  metrics: readonly MetricName[]
  figures: RefObject<HTMLElement | null>
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
    const charts = [...(figures.current?.querySelectorAll<HTMLElement>('figure') ?? [])]
    try {
      const picture = await chartsToPng(charts, {
        title: instance.name,
        subtitle: `${formatTime(from)} – ${formatTime(to)}`,
      })
      download(picture, `${instance.name}-${stamp}.png`)
    } catch (error) {
      toast({
        tone: 'bad',
        title: 'could not make the picture',
        description: error instanceof Error ? error.message : String(error),
      })
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
