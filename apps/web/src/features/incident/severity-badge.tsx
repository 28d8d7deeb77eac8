import type { IncidentSeverity } from '@floe/domain'
import { Badge } from '@floe/ui'
import { OctagonAlert, TriangleAlert } from 'lucide-react'

/** How bad it is, by word, sign and colour. What is over is not coloured any more. */
export function SeverityBadge({ severity, over }: { severity: IncidentSeverity; over?: boolean }) {
  const Icon = severity === 'critical' ? OctagonAlert : TriangleAlert
  return (
    <Badge tone={over ? 'neutral' : severity === 'critical' ? 'bad' : 'warn'}>
      <Icon aria-hidden />
      {severity}
    </Badge>
  )
}
