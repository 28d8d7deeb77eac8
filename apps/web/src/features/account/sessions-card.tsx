'use client'
import { Age, Badge, Button, Card, FaultAlert, noteConsoleTime, SkeletonRows, useToast } from '@floe/ui'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect } from 'react'
import type { RouterOutputs } from '@/server/api'
import { useTRPC } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'
import { browserName } from './browser-name'

type Session = RouterOutputs['account']['sessions']['sessions'][number]

/** Where one is signed in, and the ends of it. */
export function SessionsCard() {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const toast = useToast()
  const query = useQuery(trpc.account.sessions.queryOptions(undefined, { refetchInterval: 30_000 }))
  const consoleNow = query.data?.now
  useEffect(() => {
    if (consoleNow !== undefined) noteConsoleTime(consoleNow)
  }, [consoleNow])
  const onSettled = () => void queryClient.invalidateQueries(trpc.account.sessions.pathFilter())
  const endOthers = useMutation(
    trpc.account.endOtherSessions.mutationOptions({
      onSettled,
      onSuccess: ({ endedSessions: n }) => toast({ title: `${n} ${n === 1 ? 'session' : 'sessions'} ended` }),
    }),
  )
  const others = query.data?.sessions.filter((session) => !session.own).length ?? 0
  return (
    <Card
      title="Sessions"
      description="Browsers you are signed in with. A session ends 7 days after its last use."
      bodyClassName="p-0"
      actions={
        <Button
          size="small"
          disabled={others === 0}
          busy={endOthers.isPending}
          onClick={() => endOthers.mutate()}
        >
          End other sessions
        </Button>
      }
    >
      {endOthers.error ? <FaultAlert className="m-3" fault={faultOf(endOthers.error)} /> : null}
      {query.error && !query.data ? (
        <FaultAlert className="m-3" fault={faultOf(query.error)} onRetry={() => void query.refetch()} />
      ) : query.data === undefined ? (
        <div className="px-4 py-3">
          <SkeletonRows label="Loading sessions" />
        </div>
      ) : (
        <>
          <ul aria-label="Sessions">
            {query.data.sessions.map((session) => (
              <SessionRow key={session.sessionId} session={session} onSettled={onSettled} />
            ))}
          </ul>
          {others === 0 ? (
            <p className="border-t border-line px-4 py-3 text-sm text-ink-muted">No other sessions.</p>
          ) : null}
        </>
      )}
    </Card>
  )
}

function SessionRow({ session, onSettled }: { session: Session; onSettled: () => void }) {
  const trpc = useTRPC()
  const end = useMutation(trpc.account.endSession.mutationOptions({ onSettled }))
  const name = browserName(session.userAgent)
  return (
    <li className="border-t border-line px-4 py-3 first:border-0">
      <div className="flex flex-wrap items-center justify-between gap-x-4 gap-y-2">
        <div className="min-w-0">
          <p className="flex flex-wrap items-center gap-2 text-sm font-medium text-ink">
            <span title={session.userAgent ?? undefined}>{name}</span>
            {session.own ? <Badge tone="accent">this session</Badge> : null}
          </p>
          <p className="text-xs text-ink-muted">
            {session.address === null ? 'unknown address' : `from ${session.address}`} · last used{' '}
            <Age at={session.lastUsedAt} /> · started <Age at={session.beganAt} />
          </p>
        </div>
        {session.own ? null : (
          <Button
            size="small"
            busy={end.isPending}
            aria-label={`End session: ${name}`}
            onClick={() => end.mutate({ sessionId: session.sessionId })}
          >
            End
          </Button>
        )}
      </div>
      {end.error ? <FaultAlert className="mt-2" fault={faultOf(end.error)} /> : null}
    </li>
  )
}
