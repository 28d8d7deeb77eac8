import type { HostState, InstanceState, OperationState, StepState } from '@floe/domain'
import { formatDuration } from '@floe/domain'
import {
  Ban,
  CircleCheck,
  CircleDashed,
  CircleHelp,
  CircleOff,
  CircleX,
  Clock,
  LoaderCircle,
  type LucideIcon,
  Play,
  Square,
  Trash2,
  Unplug,
} from 'lucide-react'
import { Badge, type BadgeTone } from './badge'
import { classNames } from './class-names'

export type StateWord = InstanceState | HostState | OperationState | StepState

const looks: Record<StateWord, { tone: BadgeTone; icon: LucideIcon; moving?: true }> = {
  // instances
  creating: { tone: 'accent', icon: LoaderCircle, moving: true },
  stopped: { tone: 'neutral', icon: Square },
  starting: { tone: 'accent', icon: LoaderCircle, moving: true },
  running: { tone: 'good', icon: Play },
  stopping: { tone: 'accent', icon: LoaderCircle, moving: true },
  crashed: { tone: 'bad', icon: CircleX },
  deleting: { tone: 'warn', icon: Trash2 },
  unknown: { tone: 'neutral', icon: CircleHelp },
  // hosts
  online: { tone: 'good', icon: CircleCheck },
  stale: { tone: 'warn', icon: Clock },
  offline: { tone: 'bad', icon: Unplug },
  // operations and steps
  queued: { tone: 'neutral', icon: Clock },
  pending: { tone: 'neutral', icon: CircleDashed },
  cancelling: { tone: 'warn', icon: LoaderCircle, moving: true },
  succeeded: { tone: 'good', icon: CircleCheck },
  failed: { tone: 'bad', icon: CircleX },
  cancelled: { tone: 'neutral', icon: Ban },
}

/** A thing that runs is under way when it is an operation or a step, and well when it is an instance. */
const underWay = { tone: 'accent', icon: LoaderCircle, moving: true } as const

/**
 * A state in the domain's own word, with colour and icon. With `staleMs` (the age of an observation that is too old to
 * be believed) it is greyed and says how old it is: what was last seen is not what is.
 */
export function StateBadge({
  state,
  of,
  staleMs,
  className,
}: {
  state: StateWord
  of: 'instance' | 'host' | 'operation' | 'step'
  staleMs?: number | null
  className?: string
}) {
  const stale = staleMs !== undefined && staleMs !== null
  const look =
    state === 'running' && (of === 'operation' || of === 'step')
      ? underWay
      : (looks[state] ?? { tone: 'neutral' as const, icon: CircleOff })
  const Icon = stale ? Clock : look.icon
  return (
    <Badge
      tone={stale ? 'neutral' : look.tone}
      className={classNames(stale && 'border-dashed', className)}
      title={stale ? `last seen ${formatDuration(staleMs)} ago, not known now` : undefined}
    >
      <Icon aria-hidden className={classNames('moving' in look && !stale && 'animate-spin')} />
      {state}
      {stale ? <span className="font-normal">· {formatDuration(staleMs)} ago</span> : null}
    </Badge>
  )
}
