'use client'
import {
  type FlashbackLog,
  flashbackWords,
  formatBytes,
  formatDuration,
  windowEndedLately,
  windowShortenedLately,
} from '@floe/domain'
import { Age, Alert, Badge, Button, Card, KeyValue, Moment, useNow } from '@floe/ui'
import Link from 'next/link'
import { useInstance } from '../instance/instance-context'

/** How far back this member reaches, what that takes, and why it reaches no further. */
export function WindowCard({ log, observedAt }: { log: FlashbackLog; observedAt: number }) {
  const { name, state, cluster, stale } = useInstance()
  const now = useNow()
  const words = flashbackWords(log)
  const { limits } = log
  const shortened = now === null ? null : windowShortenedLately(log, now)
  return (
    <Card
      title="Window"
      description={
        <>
          Of {name}
          {cluster.members > 1 ? `, the ${cluster.memberRole} of its cluster; each member has its own` : ''}.
          Read from polar_stat_flashback_log <Age at={observedAt} />.
        </>
      }
      className={stale ? 'opacity-60' : undefined}
      actions={
        <Button asChild>
          <Link href={`/instances/${name}/settings/all?search=flashback`}>Settings</Link>
        </Button>
      }
    >
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        {/* what was so may not be so now: no promise by it */}
        {state === 'unknown' ? (
          <Badge tone="neutral">{words.title} when last seen</Badge>
        ) : (
          <>
            <Badge tone={words.tone}>{words.title}</Badge>
            <span className="text-sm text-ink-muted">{words.meaning}</span>
          </>
        )}
      </div>
      {now !== null && windowEndedLately(log, now) ? (
        <Alert tone="warn" className="mt-3" title="An earlier window, or a part of one, was lost">
          No moment before <Moment at={log.lastEndedAt} /> can be reached.{' '}
          {log.lastEndReason ? `The engine’s reason: ${log.lastEndReason}.` : ''}
        </Alert>
      ) : null}
      {shortened ? (
        <Alert tone="warn" className="mt-3" title="The window was made shorter than its settings allow">
          The oldest part of it was given up <Age at={shortened.lastAt} />
          {shortened.times > 1 ? `, ${shortened.times} times since the server was started` : ''}.{' '}
          {shortened.reason ? `The engine’s reason: ${shortened.reason}.` : ''}
        </Alert>
      ) : null}
      <KeyValue
        className="mt-4"
        items={[
          {
            label: 'Oldest moment',
            value: log.oldestAt === null ? null : <Moment at={log.oldestAt} />,
            source: 'polar_stat_flashback_log.oldest_time',
          },
          {
            label: 'Reaches back',
            value: log.oldestAt === null || now === null ? null : formatDuration(now - log.oldestAt),
          },
          { label: 'Flashback points', value: log.points, source: 'polar_flashback_points' },
          { label: 'Mode', value: log.mode },
          {
            label: 'Size of the log',
            value: `${formatBytes(log.sizeBytes)}${
              limits.maxBytes === null ? '' : ` of at most ${formatBytes(limits.maxBytes)}`
            }`,
            source: 'polar_stat_flashback_log.size_bytes',
          },
          {
            label: 'Growth between the last two points',
            value: log.bytesPerSecond === null ? null : `${formatBytes(log.bytesPerSecond * 3_600)}/h`,
            source: 'polar_stat_flashback_log.bytes_per_second',
          },
          {
            label: 'Kept',
            value: limits.recoveryArea
              ? `${limits.rotationMs / 60_000} min, with its WAL`
              : `${formatBytes(limits.keepBytes)}, as long as its WAL is there`,
          },
          {
            label: 'Pages that could not be kept',
            value: log.failures,
            source: 'polar_stat_flashback_log.failures',
          },
        ]}
      />
      {limits.recoveryArea ? null : (
        <p className="mt-3 max-w-3xl text-xs text-ink-muted">
          polar_enable_fast_recovery_area is off: WAL that the window needs may be removed, and the window
          then gets shorter.
        </p>
      )}
    </Card>
  )
}
