'use client'
import {
  dispatcherFaultHint,
  dispatcherFaultWords,
  formatBytes,
  formatWait,
  type SettingChange,
  type SharedServer,
  sharedServerState,
  sharedServerWords,
  workersWords,
} from '@floe/domain'
import { Age, Alert, Badge, Button, Card, KeyValue, Moment } from '@floe/ui'
import { useMayChange, viewerHint } from '../console/account-context'
import { useInstance } from '../instance/instance-context'

const n = (count: number) => count.toLocaleString('en-US')
const wait = (ms: number | null) => (ms === null ? null : formatWait(ms))

/** Sessions by mode and state, workers and waits; turns Shared Server on and off at its port, and closes that. */
export function SessionsCard({
  server,
  observedAt,
  stale,
  held,
  onReview,
}: {
  server: SharedServer
  observedAt: number
  /** It is not known whether this still holds. */
  stale: boolean
  /** Why nothing can be changed now. */
  held: string | null
  onReview: (changes: SettingChange[]) => void
}) {
  const { port, state } = useInstance()
  const mayChange = useMayChange()
  const words = sharedServerWords(server)
  const { counts: c } = server
  const faults = dispatcherFaultWords(server)
  const button = {
    disabled: !mayChange || held !== null || state !== 'running',
    title: mayChange ? (held ?? undefined) : viewerHint,
  }
  return (
    <Card
      title={
        <>
          Shared Server <Badge tone="warn">Experimental</Badge>
        </>
      }
      description={
        <>
          Port {server.port}. Read from polar_stat_dispatcher <Age at={observedAt} />.
        </>
      }
      actions={
        <>
          {server.enabled ? (
            <Button
              {...button}
              onClick={() => onReview([{ name: 'polar_enable_shared_server', value: 'off' }])}
            >
              Turn off
            </Button>
          ) : (
            <Button
              {...button}
              variant="primary"
              onClick={() => onReview([{ name: 'polar_enable_shared_server', value: 'on' }])}
            >
              Turn on
            </Button>
          )}
          <Button
            {...button}
            onClick={() =>
              onReview([
                { name: 'polar_enable_shared_server', value: 'off' },
                { name: 'polar_ss_port', value: '0' },
              ])
            }
          >
            Close the port
          </Button>
        </>
      }
    >
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <Badge tone={stale ? 'neutral' : words.tone}>
          {stale ? `${words.title} when last seen` : words.title}
        </Badge>
        {stale ? null : <span className="text-sm text-ink-muted">{words.meaning}</span>}
      </div>
      {faults.length > 0 && !stale ? (
        <Alert
          tone="bad"
          className="mt-3"
          title={
            sharedServerState(server) === 'down'
              ? 'The shared port is not served'
              : 'Not every dispatcher does its work'
          }
        >
          {faults.map((fault) => `${fault}. `)}
          {server.counts === null && server.dispatcher === 'absent'
            ? server.port === port
              ? 'The shared port is the instance’s own: choose another one. '
              : `Another program may have port ${server.port}. `
            : ''}
          {dispatcherFaultHint(server)} Clients can use port {port} meanwhile.
        </Alert>
      ) : null}
      {c ? (
        <KeyValue
          className="mt-4"
          items={[
            {
              label: 'Shared sessions',
              value: n(c.shared),
              source: 'polar_stat_dispatcher, without n_dedicated',
            },
            {
              label: 'Dedicated sessions',
              value: n(c.dedicated),
              source: 'polar_stat_dispatcher.n_dedicated',
            },
            {
              label: 'Native sessions',
              value: n(c.native),
              source: 'polar_stat_dispatcher.n_native, without the agent’s own',
            },
            {
              label: 'Bound',
              value: n(c.bound),
              source: 'polar_stat_dispatcher.n_bound: served by a worker',
            },
            {
              label: 'Parked',
              value: n(c.parked),
              source: 'polar_stat_dispatcher.n_parked: silent, without a worker',
            },
            {
              label: 'Waiting',
              value: n(c.waiting),
              source: 'polar_stat_dispatcher.n_waiting: for a worker',
            },
            {
              label: 'Workers',
              value: `${workersWords(c.workers, server.workersMax)}, ${n(c.freeWorkers)} free`,
              source: 'polar_stat_dispatcher.n_backends; polar_ss_backend_max_count',
            },
            ...(server.dispatchers && server.dispatchers.length > 1
              ? [
                  {
                    label: 'Dispatchers',
                    value: n(server.dispatchers.length),
                    source: 'polar_ss_dispatcher_count',
                  },
                ]
              : []),
            {
              label: 'Wait, p50',
              value: wait(c.waitP50Ms),
              source: 'polar_stat_dispatcher.wait_p50, since the start',
            },
            {
              label: 'Wait, p99',
              value: wait(c.waitP99Ms),
              source: 'polar_stat_dispatcher.wait_p99, since the start',
            },
            {
              label: 'Ended after waiting too long',
              value: n(c.timeouts),
              source: 'polar_stat_dispatcher.timeouts; polar_ss_session_wait_timeout',
            },
            { label: 'Transactions', value: n(c.transactions), source: 'polar_stat_dispatcher.transactions' },
            {
              label: 'Memory of sessions',
              value: `${formatBytes(c.memoryBytes)} of at most ${formatBytes(server.memoryMaxBytes)}`,
              source: 'polar_stat_dispatcher.session_memory; polar_ss_shared_memory_size',
            },
            { label: 'Counted since', value: <Moment at={c.since} /> },
          ]}
        />
      ) : null}
      {server.tls ? (
        <p className="mt-3 max-w-3xl text-xs text-ink-muted">
          This instance offers TLS: a client that uses it is native. libpq does unless sslmode=disable.
        </p>
      ) : null}
    </Card>
  )
}
