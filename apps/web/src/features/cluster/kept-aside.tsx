'use client'
import { ownWalWords } from '@floe/domain'
import { Age, Copyable } from '@floe/ui'
import { useQueries } from '@tanstack/react-query'
import { useTRPC } from '@/trpc/client'
import type { Member } from './use-cluster'

/** It changes with a rejoin only. */
const EVERY_MS = 60_000

/**
 * What members had alone and is kept aside on their hosts since they were rejoined; nothing while there is none. A host that
 * does not answer is reported elsewhere on the page.
 */
export function KeptAsideLines({ members }: { members: readonly Member[] }) {
  const trpc = useTRPC()
  const found = useQueries({
    queries: members.map((m) =>
      trpc.keptAside.list.queryOptions(
        { instanceId: m.instanceId },
        { enabled: m.hostState === 'online', refetchInterval: EVERY_MS, retry: false },
      ),
    ),
  })
  const kept = members.flatMap((m, i) =>
    (found[i]?.data?.keptAside ?? []).map((aside) => ({ member: m.name, aside })),
  )
  if (kept.length === 0) return null
  return (
    <section
      aria-label="Kept aside at rejoin"
      className="flex flex-col gap-1.5 border-t border-line px-4 py-2.5"
    >
      {kept.map(({ member, aside }) => (
        <div
          key={aside.name}
          className="flex min-w-0 flex-wrap items-center gap-x-2 gap-y-1 text-sm text-ink-muted"
        >
          <span title={aside.unknown ?? undefined}>
            Kept aside when {member} was rejoined: {ownWalWords(aside)}, <Age at={aside.at} />. To read it:
          </span>
          <Copyable
            text={`./floe instance kept-aside ${member} --dump ${aside.name}`}
            what="the command"
            className="min-w-0"
          />
        </div>
      ))}
    </section>
  )
}
