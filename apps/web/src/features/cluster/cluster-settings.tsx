'use client'
import {
  Age,
  Alert,
  Badge,
  Button,
  Card,
  EmptyState,
  FaultAlert,
  SkeletonRows,
  Table,
  TableBody,
  TableCell,
  TableHead,
  TableHeader,
  TableRow,
} from '@floe/ui'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Network } from 'lucide-react'
import Link from 'next/link'
import { useState } from 'react'
import type { ClusterSettingView } from '@/server/api'
import { useTRPC } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'
import { useMayChange, viewerHint } from '../console/account-context'
import { useInstance } from '../instance/instance-context'
import { ImpactBadge } from '../setting/impact-badge'
import { ClusterChangeDialog } from './cluster-change-dialog'
import { ClusterSettingHistory } from './cluster-setting-history'
import { ClusterSettingRevisions } from './cluster-setting-revisions'

/** Settings of all members of the cluster beside each other, changed on all of them in the right order. */
export function ClusterSettings() {
  const { cluster, name } = useInstance()
  const trpc = useTRPC()
  const queries = useQueryClient()
  const mayChange = useMayChange()
  const [changing, setChanging] = useState<ClusterSettingView | 'another' | null>(null)
  const [done, setDone] = useState(false)
  const { clusterId } = cluster
  const several = cluster.members > 1
  const query = useQuery(
    trpc.clusterSetting.list.queryOptions({ clusterId }, { refetchOnWindowFocus: true, enabled: several }),
  )
  const applied = () => {
    setDone(true)
    void queries.invalidateQueries({ queryKey: trpc.clusterSetting.pathKey() })
    void queries.invalidateQueries({ queryKey: trpc.setting.pathKey() })
  }
  if (!several)
    return (
      <Card>
        <EmptyState
          icon={Network}
          title="This cluster has one member"
          action={
            <Button asChild>
              <Link href={`/instances/${name}/replication`}>Create a standby</Link>
            </Button>
          }
        >
          Its settings are those of the instance.
        </EmptyState>
      </Card>
    )
  const silent = query.data?.members.filter((m) => m.fault) ?? []
  return (
    <div className="flex min-w-0 flex-col gap-3">
      {done ? (
        <Alert tone="good" title="Confirmed by every member">
          Each of them has said the new values itself.
        </Alert>
      ) : null}
      {query.error && !query.data ? (
        <FaultAlert fault={faultOf(query.error)} onRetry={() => void query.refetch()} />
      ) : null}
      {silent.map((m) => (m.fault ? <FaultAlert key={m.instanceId} fault={m.fault} tone="warn" /> : null))}
      <Card
        title={`Settings of ${cluster.name}`}
        description="Changed on all members together, one after the other; what fails puts all of them back. Members take those marked “in order” so that no standby has it smaller than its primary: it would stop replaying."
        actions={
          <Button
            disabled={!mayChange}
            title={mayChange ? undefined : viewerHint}
            onClick={() => setChanging('another')}
          >
            Change another setting
          </Button>
        }
        bodyClassName="p-0"
      >
        {query.data ? (
          <Table label={`Settings of the members of ${cluster.name}`}>
            <TableHead>
              <tr>
                <TableHeader>Setting</TableHeader>
                {query.data.members.map((m) => (
                  <TableHeader key={m.instanceId}>
                    {m.name}
                    <span className="block font-normal text-ink-muted">{m.memberRole}</span>
                  </TableHeader>
                ))}
                <TableHeader>Needs</TableHeader>
                <TableHeader actions>
                  <span className="sr-only">Change</span>
                </TableHeader>
              </tr>
            </TableHead>
            <TableBody>
              {query.data.settings.map((setting) => (
                <SettingRow
                  key={setting.name}
                  setting={setting}
                  mayChange={mayChange}
                  onChange={() => setChanging(setting)}
                />
              ))}
            </TableBody>
          </Table>
        ) : (
          <SkeletonRows rows={6} label="Asking the members for their settings" />
        )}
      </Card>
      {query.data ? (
        <p className="text-xs text-ink-muted">
          pg_settings of each member, read <Age at={query.data.observedAt} />. Listed are those whose order
          matters, those that Floe set, and those that differ.
        </p>
      ) : null}
      <ClusterSettingRevisions onApplied={applied} />
      <ClusterSettingHistory />
      <ClusterChangeDialog setting={changing} onClose={() => setChanging(null)} onApplied={applied} />
    </div>
  )
}

/** From this length on only the beginning is shown, and the rest on demand: connection strings would fill the screen. */
const mostShown = 80

function LongValue({ text }: { text: string }) {
  const [all, setAll] = useState(false)
  const long = text.length > mostShown
  return (
    <>
      <span className="font-mono [overflow-wrap:anywhere]">
        {long && !all ? `${text.slice(0, mostShown)}…` : text}
      </span>
      {long ? (
        <Button variant="link" size="small" aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? 'Show less' : 'Show all of it'}
        </Button>
      ) : null}
    </>
  )
}

function SettingRow({
  setting,
  mayChange,
  onChange,
}: {
  setting: ClusterSettingView
  mayChange: boolean
  onChange: () => void
}) {
  return (
    <TableRow>
      <TableCell className="align-top sm:min-w-56">
        <p className="font-mono break-all">{setting.name}</p>
        <p className="mt-0.5 text-xs text-ink-muted max-sm:hidden">{setting.description}</p>
        <p className="mt-1 flex flex-wrap gap-1.5 empty:hidden">
          {setting.tooSmallOn.length > 0 ? (
            <Badge tone="bad">too small on {setting.tooSmallOn.join(', ')}</Badge>
          ) : setting.differs ? (
            <Badge tone="warn">differs</Badge>
          ) : null}
        </p>
      </TableCell>
      {setting.values.map((value, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: one column per member, in their order
        <TableCell key={i} className="min-w-24 align-top">
          <LongValue text={value === null ? '–' : value.shown === '' ? '(empty)' : (value.shown ?? '–')} />
          {value?.pending != null ? (
            <p className="mt-1">
              <Badge tone="warn">after a restart: {value.pending}</Badge>
            </p>
          ) : null}
        </TableCell>
      ))}
      <TableCell className="align-top">
        <span className="inline-flex flex-wrap gap-1.5">
          <ImpactBadge impact={setting.impact} />
          {setting.ordered ? (
            <Badge title="A greater value goes to the standbys first, a smaller one to the primary first">
              in order
            </Badge>
          ) : null}
        </span>
      </TableCell>
      <TableCell actions className="align-top">
        <Button
          size="small"
          disabled={!mayChange || setting.ownOfMember !== null || setting.impact === 'read-only'}
          title={mayChange ? (setting.ownOfMember ?? undefined) : viewerHint}
          aria-label={`Change ${setting.name} on all members`}
          onClick={onChange}
        >
          Change
        </Button>
      </TableCell>
    </TableRow>
  )
}
