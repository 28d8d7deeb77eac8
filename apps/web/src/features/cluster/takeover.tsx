'use client'
import { exactBytes, type InstanceId } from '@floe/domain'
import {
  Alert,
  Badge,
  Button,
  Card,
  FaultAlert,
  Field,
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
import Link from 'next/link'
import { useRouter } from 'next/navigation'
import { useState } from 'react'
import { faultOf } from '@/trpc/fault'
import { useMayChange, viewerHint } from '../console/account-context'
import { newIdempotencyKey } from '../console/idempotency-key'
import { useInstance } from '../instance/instance-context'
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
      <Alert title="There is no standby that could take over">
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
  const [loss, setLoss] = useState('')
  const [host, setHost] = useState('')
  const router = useRouter()
  const verbs = useClusterVerbs()
  const mayChange = useMayChange()
  const list = candidates[way]
  const candidate =
    list.find((c) => c.instanceId === chosen) ?? list.find((c) => c.blockers.length === 0) ?? list[0]
  const verb = verbs[way]
  const silent = way === 'failover' && primary !== undefined && primary.hostState !== 'online'
  const needsLoss = way === 'failover' && candidate !== undefined && !candidate.lossless
  // typed exactly, as it stands there: a loss is not accepted by a habit
  const expected = candidate?.expectedLossBytes ?? null
  const lossTyped = expected === null || silent ? loss === 'unknown' : loss === String(expected)
  const blocked = candidate === undefined || (candidate.blockers.length > 0 && !(needsLoss && lossTyped))
  const ready = !blocked && (!needsLoss || lossTyped) && (!silent || host === primary?.hostName)

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
          acceptLoss: needsLoss ? (loss === 'unknown' ? 'unknown' : Number(loss)) : null,
          unreachableHost: silent ? host : null,
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
              verb.reset()
            }}
            choices={[
              { value: 'switchover', label: 'Switchover', title: 'From a running primary; loses nothing' },
              { value: 'failover', label: 'Failover', title: 'From a primary that is gone or has to go' },
            ]}
          />
          <p className="text-sm text-ink-muted">
            {way === 'switchover'
              ? 'The primary is stopped in order, the standby takes over once it has everything, and the former primary follows it. Nothing is lost. Until the standby is promoted, a cancel takes everything back.'
              : 'The former primary is fenced: it is stopped and starts as a standby only, whoever starts it. Then the standbys are compared, and one takes over.'}
          </p>
        </div>
      </Card>
      <Card title="Who takes over" bodyClassName="p-0">
        <Table label="Candidates">
          <TableHead>
            <tr>
              <TableHeader>Candidate</TableHeader>
              <TableHeader number>Behind</TableHeader>
              <TableHeader number>Expected loss</TableHeader>
              <TableHeader>In the way</TableHeader>
            </tr>
          </TableHead>
          <TableBody>
            {list.map((c) => (
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
                <TableCell>
                  {c.blockers.length === 0 ? (
                    <span className="text-ink-muted">nothing</span>
                  ) : (
                    c.blockers.map((b) => (
                      <p key={b.code}>
                        {b.message}
                        {b.hint ? <span className="block text-ink-muted">{b.hint}</span> : null}
                      </p>
                    ))
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
      <Card title="Stages" bodyClassName="p-0">
        <Table label="Stages">
          <TableHead>
            <tr>
              <TableHeader>Stage</TableHeader>
              <TableHeader>Clients can write during it?</TableHeader>
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
      {silent ? (
        <Alert
          tone="bad"
          title={`Host "${primary?.hostName}" is out of reach: its primary cannot be fenced now`}
        >
          <p>
            If it still runs there, clients that reach it go on writing to it until its host answers; those
            writes are lost. It is fenced as soon as its host answers.
          </p>
          <Field label={`Type "${primary?.hostName}" to fail over all the same`}>
            {(control) => (
              <Input {...control} value={host} onChange={(event) => setHost(event.target.value)} />
            )}
          </Field>
        </Alert>
      ) : null}
      {needsLoss ? (
        <Alert tone="bad" title="Acknowledged commits may be lost">
          <p>
            {expected === null || silent
              ? 'How much cannot be known.'
              : `By the newest positions ${exactBytes(expected)} of WAL. When the primary is fenced and more than that is missing, the failover stops and says so.`}
          </p>
          <Field
            label={
              expected === null || silent
                ? 'Type "unknown" to accept a loss that cannot be known'
                : `Type ${expected} to accept a loss of at most so many bytes`
            }
          >
            {(control) => (
              <Input {...control} value={loss} onChange={(event) => setLoss(event.target.value)} />
            )}
          </Field>
        </Alert>
      ) : null}
      {verb.error ? <FaultAlert fault={faultOf(verb.error)} /> : null}
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
    </div>
  )
}

function Loss({ candidate }: { candidate: Candidate }) {
  if (candidate.lossless) return <>0 bytes</>
  return <>{candidate.expectedLossBytes === null ? 'unknown' : exactBytes(candidate.expectedLossBytes)}</>
}
