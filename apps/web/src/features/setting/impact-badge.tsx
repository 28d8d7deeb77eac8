import { Badge } from '@floe/ui'
import { Lock, PlugZap, RefreshCw, RotateCw } from 'lucide-react'
import type { SettingView } from '@/server/api'
import { impactMeaning, impactWords } from './setting-diff'

const looks = {
  reload: { tone: 'neutral', icon: RefreshCw },
  restart: { tone: 'warn', icon: RotateCw },
  'new-connections': { tone: 'neutral', icon: PlugZap },
  'read-only': { tone: 'neutral', icon: Lock },
} as const

/** Reload or restart: what a change of this setting costs. */
export function ImpactBadge({ impact }: { impact: SettingView['impact'] }) {
  const { tone, icon: Icon } = looks[impact]
  return (
    <Badge tone={tone} title={impactMeaning[impact]}>
      <Icon aria-hidden />
      {impactWords[impact]}
    </Badge>
  )
}
