'use client'
import { doubtSentences, exactBytes, type InstanceId, unsettledMembers } from '@floe/domain'
import {
  Alert,
  Badge,
  Button,
  Card,
  FaultAlert,
  Field,
  formatTime,
  Input,
  Segmented,
  SkeletonRows,
  Table,
  TableBody,
  TableCell,
  TableHead,
  TableHeader,
  TableRow,
} from '@floe/ui'
import { RotateCw } from 'lucide-react'
import Link from 'next/link'
import { useRouter } from 'next/navigation'
import { useState } from 'react'
import { faultOf } from '@/trpc/fault'
import { useMayChange, viewerHint } from '../console/account-context'
import { newIdempotencyKey } from '../console/idempotency-key'
import { useInstance } from '../instance/instance-context'
import { Refusal } from '../operation/refusal'
import { HeldWal } from './held-wal'
import { acceptedLoss, isAboutLoss, type StatedLoss } from './typed-loss'
import { type Candidate, type ClusterDetail, useCluster, useClusterVerbs } from './use-cluster'

type Way = 'switchover' | 'failover'

/** Who takes over, what stands in the way, what it would lose, and what clients feel: before anything is done. */
export function Takeover() {
  const instance = useInstance()
  const query = useCluster()
  if (query.error && !query.data)
    return <FaultAlert fault={faultOf(query.error)} onRetry={() => void query.refetch()} />
  if (!query.data)
    return (
      <Card>
        <SkeletonRows label="Loading the cluster" />
      </Card>
    )
  if (query.data.cluster.members.length === 1)
    return (
      <Alert title="No standby can take over">
        <Link
          href={`/instances/${instance.name}/replication`}
          className="font-medium text-accent hover:underline"
        >
          Create one
        </Link>
      </Alert>
    )
  return <TakeoverForm detail={query.data} />
}

function TakeoverForm({ detail }: { detail: ClusterDetail }) {
  const { cluster, candidates, stages } = detail
  const primary = cluster.members.find((m) => m.instanceId === cluster.primaryInstanceId)
  const alive = primary?.state === 'running' && primary.hostState === 'online'
  const [way, setWay] = useState<Way>(alive ? 'switchover' : 'failover')
  const [chosen, setChosen] = useState<InstanceId | null>(null)
  const [stated, setStated] = useState<StatedLoss | null>(null)
  const [loss, setLoss] = useState('')
  const [hosts, setHosts] = useState<Record<string, string>>({})
  const router = useRouter()
  const verbs = useClusterVerbs()
  const mayChange = useMayChange()
  const list = candidates[way]
  const candidate =
    list.find((c) => c.instanceId === chosen) ?? list.find((c) => c.blockers.length === 0) ?? list[0]
  // by name: the best first would have rows change places under the hand while lags move
  const rows = list.toSorted((a, b) => (a.name < b.name ? -1 : 1))
  const verb = verbs[way]
  const silent = way === 'failover' && primary !== undefined && primary.hostState !== 'online'
  const possible = way === 'failover' ? unsettledMembers(cluster) : []
  // each may accept writes where it is, and nobody can fence it there
  const unreached = [
    ...new Set(
      [...(silent && primary ? [primary] : []), ...possible]
        .filter((m) => m.hostState !== 'online' && m.instanceId !== candidate?.instanceId)
        .map((m) => m.hostName),
    ),
  ]
  const needsLoss = way === 'failover' && candidate !== undefined && !candidate.lossless
  const lossOf = (c: Candidate): StatedLoss => ({
    instanceId: c.instanceId,
    bytes: c.expectedLossBytes,
    // when the primary's position was seen, by the console's clock
    at: detail.now - (primary?.ageMs ?? 0),
  })
  // of a primary that still writes the loss changes with every look: what is to be typed stands still from here on
  if (needsLoss && stated?.instanceId !== candidate.instanceId) {
    setChosen(candidate.instanceId)
    setStated(lossOf(candidate))
    setLoss('')
  }
  const accepted = needsLoss ? acceptedLoss(loss, stated?.bytes ?? null, unreached.length > 0) : null
  const blockers = (candidate?.blockers ?? []).filter((b) => !(needsLoss && isAboutLoss(b)))
  const ready =
    candidate !== undefined &&
    blockers.length === 0 &&
    (!needsLoss || accepted !== null) &&
    unreached.every((name) => hosts[name] === name)

  const start = () => {
    if (!candidate) return
    const input = {
      clusterId: cluster.clusterId,
      instanceId: candidate.instanceId,
      idempotencyKey: newIdempotencyKey(),
    }
    const follow = {
      onSuccess: ({ operationId }: { operationId: string }) => router.push(`/operations/${operationId}`),
    }
    if (way === 'switchover') verbs.switchover.mutate(input, follow)
    else
      verbs.failover.mutate(
        {
          ...input,
          acceptLoss: accepted,
          unreachableHost: unreached[0] ?? null,
          alsoUnreachable: unreached.slice(1),
        },
        follow,
      )
  }

  return (
    <div className="flex min-w-0 flex-col gap-3">
      <Card title={`Another primary for ${cluster.name}`}>
        <div className="flex flex-col gap-3">
          <Segmented<Way>
            label="How"
            className="self-start"
            value={way}
            onChange={(w) => {
              setWay(w)
              setChosen(null)
              setStated(null)
              setLoss('')
              verb.reset()
            }}
            choices={[
              {
                value: 'switchover',
                label: 'Switchover',
                title: 'From a running primary, which is shut down',
              },
              {
                value: 'failover',
                label: 'Failover',
                title: 'From a primary that is lost or has to be replaced',
              },
            ]}
          />
          <p className="text-sm text-ink-muted">
            {way === 'switchover'
              ? 'The primary is shut down, the standby is promoted only once it has replayed all WAL, and the former primary becomes its standby. Until the promotion a cancel restores the primary.'
              : 'The former primary is fenced: it is stopped and can only start as a standby. Then the standbys are compared, and the one you choose is promoted.'}
          </p>
        </div>
      </Card>
      <Card title="New primary" bodyClassName="p-0">
        <Table label="Candidates">
          <TableHead>
            <tr>
              <TableHeader>Candidate</TableHeader>
              <TableHeader number>Behind</TableHeader>
              <TableHeader number>Expected loss</TableHeader>
              <TableHeader>Blockers</TableHeader>
            </tr>
          </TableHead>
          <TableBody>
            {rows.map((c) => (
              <TableRow key={c.instanceId}>
                <TableCell>
                  <label className="flex items-center gap-2 whitespace-nowrap">
                    <input
                      type="radio"
                      name="candidate"
                      checked={candidate?.instanceId === c.instanceId}
                      onChange={() => setChosen(c.instanceId)}
                    />
                    {c.name} <span className="text-ink-muted">on {c.hostName}</span>
                  </label>
                </TableCell>
                <TableCell number className="whitespace-nowrap">
                  {c.lagBytes === null ? 'unknown' : exactBytes(c.lagBytes)}
                </TableCell>
                <TableCell number className="whitespace-nowrap">
                  <Loss candidate={c} />
                </TableCell>
                <TableCell className="min-w-56">
                  {c.blockers.length === 0 && c.notes.length === 0 ? (
                    <span className="text-ink-muted">none</span>
                  ) : (
                    c.blockers.map((b) => <p key={b.code}>{b.message}</p>)
                  )}
                  {c.notes.map((n) => (
                    <p key={n} className="text-ink-muted">
                      {n}
                    </p>
                  ))}
                </TableCell>
              </TableRow>
            ))}
          </TableBody>
        </Table>
      </Card>
      {way === 'failover' && candidate ? (
        <Card title="WAL on each member, as last seen" bodyClassName="p-0">
          <HeldWal asked={candidate.asked} candidate={candidate.name} seen={cluster.members} />
          {candidate.lossless ? (
            <p className="px-4 py-3 text-sm text-ink-muted">
              No acknowledged commit is expected to be lost. The failover proves that before it promotes{' '}
              {candidate.name}; without the proof no standby takes over.
            </p>
          ) : null}
        </Card>
      ) : null}
      {way === 'failover' && alive ? (
        <Alert title="The primary is running">
          A switchover loses nothing and interrupts clients for less time. Fail over only if the primary has
          to be replaced without delay.
        </Alert>
      ) : null}
      {blockers.map((b) => (
        <FaultAlert key={b.code} fault={b} tone="warn" />
      ))}
      {unreached.map((name) => (
        <Alert
          key={name}
          tone="bad"
          title={
            name === primary?.hostName
              ? `Host "${name}" is unreachable: the primary on it cannot be fenced now`
              : `Host "${name}" is unreachable: the instance on it may have been promoted`
          }
        >
          <p>
            If it still runs there, clients that reach it can keep writing to it until the host answers again.
            Those writes are lost. Floe fences it as soon as the host answers.
          </p>
          <Field label={`Type "${name}" to fail over without fencing it first`}>
            {(control) => (
              <Input
                {...control}
                value={hosts[name] ?? ''}
                onChange={(event) => setHosts({ ...hosts, [name]: event.target.value })}
              />
            )}
          </Field>
        </Alert>
      ))}
      {needsLoss && stated ? (
        <AcceptLoss
          stated={stated}
          now={candidate.expectedLossBytes}
          silent={unreached.length > 0}
          alive={alive}
          doubts={[...candidate.blockers.filter(isAboutLoss).map(doubtSentences), ...candidate.notes]}
          loss={loss}
          onType={setLoss}
          onLookAgain={() => {
            setStated(lossOf(candidate))
            setLoss('')
          }}
        />
      ) : null}
      {verb.error ? <Refusal error={verb.error} /> : null}
      <div>
        <Button
          variant={way === 'failover' ? 'danger' : 'primary'}
          busy={verb.isPending}
          disabled={!mayChange || !ready || detail.openOperation !== null}
          title={mayChange ? undefined : viewerHint}
          onClick={start}
        >
          {way === 'switchover' ? 'Switch over' : 'Fail over'} to {candidate?.name ?? '…'}
        </Button>
      </div>
      <Card title="Stages" bodyClassName="p-0">
        <Table label="Stages">
          <TableHead>
            <tr>
              <TableHeader>Stage</TableHeader>
              <TableHeader>Can clients write?</TableHeader>
            </tr>
          </TableHead>
          <TableBody>
            {stages[way].map((s) => (
              <TableRow key={s.name}>
                <TableCell>{s.title}</TableCell>
                <TableCell>
                  <Badge tone={s.clientsCanWrite ? 'good' : 'warn'}>{s.clientsCanWrite ? 'yes' : 'no'}</Badge>
                  {s.name === 'promote' ? (
                    <span className="ml-2 text-xs text-ink-muted">point of no return</span>
                  ) : null}
                </TableCell>
              </TableRow>
            ))}
          </TableBody>
        </Table>
      </Card>
    </div>
  )
}

/** What would be lost, as of one moment, and the field in which a person takes that on. */
function AcceptLoss({
  stated,
  now,
  silent,
  alive,
  doubts,
  loss,
  onType,
  onLookAgain,
}: {
  stated: StatedLoss
  /** The same by the newest positions. */
  now: number | null
  /** The primary's host does not answer. */
  silent: boolean
  /** The primary runs. */
  alive: boolean
  /** Why it is not proven that nothing is lost. */
  doubts: readonly string[]
  loss: string
  onType: (loss: string) => void
  onLookAgain: () => void
}) {
  const { bytes } = stated
  const words = (n: number | null) => (n === null ? 'unknown' : exactBytes(n))
  return (
    <Alert tone="bad" title="Acknowledged commits may be lost">
      <div className="flex flex-col gap-2">
        {doubts.map((doubt) => (
          <p key={doubt}>{doubt}</p>
        ))}
        {silent ? (
          <p>The amount is unknown: the primary cannot be reached.</p>
        ) : (
          <>
            <p>
              As of <span className="tabular-nums">{formatTime(stated.at, false).slice(11)}</span> the loss is{' '}
              <strong className="font-medium text-ink">
                {words(bytes)}
                {bytes === null ? '' : ' of WAL'}
              </strong>
              {now === bytes ? '' : `, by the newest positions ${words(now)}`}.
              {alive ? ' The primary runs: it can grow.' : ''}
            </p>
            <p>
              The loss is measured once the primary is fenced. If it is more than you type, no standby takes
              over
              {alive ? ', the primary continues' : ''}, and the operation reports the number.
            </p>
            <div>
              <Button size="small" onClick={onLookAgain}>
                <RotateCw aria-hidden />
                Refresh
              </Button>
            </div>
          </>
        )}
        <Field
          label={
            silent
              ? 'Type "unknown" to accept a loss of unknown size'
              : bytes === null
                ? 'Type how many bytes may be lost at most, or "unknown" to accept any loss'
                : `Type ${bytes} or more: the bytes of WAL that may be lost at most`
          }
        >
          {(control) => (
            <Input
              {...control}
              value={loss}
              autoComplete="off"
              spellCheck={false}
              onChange={(event) => onType(event.target.value)}
            />
          )}
        </Field>
      </div>
    </Alert>
  )
}

function Loss({ candidate }: { candidate: Candidate }) {
  if (candidate.lossless && candidate.expectedLossBytes === 0) return <>0 bytes</>
  return <>{candidate.expectedLossBytes === null ? 'unknown' : exactBytes(candidate.expectedLossBytes)}</>
}
