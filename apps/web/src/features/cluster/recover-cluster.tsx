'use client'
import { HostDirectory, recoverWords } from '@floe/domain'
import { Alert, Button, ConfirmDialog, Field, Input } from '@floe/ui'
import { useState } from 'react'
import { useMayAdminister } from '../console/account-context'
import { newIdempotencyKey } from '../console/idempotency-key'
import { refusalOf } from '../operation/refusal'
import { type ClusterDetail, useClusterVerbs } from './use-cluster'

type Backup = { backup: string; wal: string }
const NO_BACKUP: Backup = { backup: '', wal: '' }

/** What is wrong with a directory; nothing while it is empty. */
const problem = (directory: string): string | undefined => {
  const parsed = directory === '' ? null : HostDirectory.safeParse(directory)
  return parsed?.success === false ? `It ${parsed.error.issues[0]?.message}.` : undefined
}

const { backup: backupWords, ...withoutBackup } = recoverWords

/** Offered while no member of a cluster with standbys runs: then each may wait for what only another one’s disk has. */
export function RecoverCluster({ detail }: { detail: ClusterDetail }) {
  const { cluster } = detail
  const [asking, setAsking] = useState(false)
  const [directories, setDirectories] = useState(NO_BACKUP)
  const { recover } = useClusterVerbs()
  const mayAdminister = useMayAdminister()
  const primary = cluster.members.find((m) => m.instanceId === cluster.primaryInstanceId)
  const members = cluster.members.filter((m) => m.memberRole !== 'fenced')
  const down = members.every((m) => m.state === 'crashed' || m.state === 'stopped' || m.state === 'starting')
  const crashed = members.some((m) => m.state === 'crashed')
  const offered = down && (crashed || primary?.intent === 'running') && members.length > 1
  // a dialog that is open stays until the person has closed it
  if (!primary || !(asking || (offered && detail.openOperation === null))) return null
  return (
    <>
      <Alert tone="warn" title="No member of this cluster runs">
        <p>
          A member whose agent still tries to start it may recover without this operation. Where the log of
          one says that a page is torn and no source could give it, the cluster can be recovered. Pages that
          are whole on no member come from a base backup, if you have one.
        </p>
        <Button
          disabled={!mayAdminister}
          title={mayAdminister ? undefined : 'An owner or admin can recover a cluster.'}
          onClick={() => setAsking(true)}
        >
          Recover cluster
        </Button>
      </Alert>
      <ConfirmDialog
        open={asking}
        onOpenChange={(open) => {
          if (!open) recover.reset()
          setAsking(open)
        }}
        title={`Recover cluster ${cluster.name}`}
        confirmLabel="Recover cluster"
        danger
        typedName={primary.name}
        busy={recover.isPending}
        incomplete={
          problem(directories.backup) !== undefined ||
          problem(directories.wal) !== undefined ||
          (directories.backup === '' && directories.wal !== '')
        }
        {...refusalOf(recover.error)}
        onConfirm={() =>
          recover.mutate(
            {
              clusterId: cluster.clusterId,
              confirmName: primary.name,
              backupDirectory: directories.backup || undefined,
              walDirectory: directories.wal || undefined,
              idempotencyKey: newIdempotencyKey(),
            },
            {
              onSuccess: () => {
                setAsking(false)
                setDirectories(NO_BACKUP)
              },
            },
          )
        }
      >
        {Object.entries(withoutBackup).map(([what, words]) => (
          <p key={what}>{words}</p>
        ))}
        <details
          className="rounded-md border border-line"
          open={directories.backup !== '' || directories.wal !== '' || undefined}
        >
          <summary className="px-3 py-2 text-sm font-medium">With a base backup</summary>
          <div className="flex flex-col gap-3 px-3 pb-3">
            <p>{backupWords}</p>
            <BackupFields directories={directories} hostName={primary.hostName} onChange={setDirectories} />
          </div>
        </details>
      </ConfirmDialog>
    </>
  )
}

function BackupFields({
  directories,
  hostName,
  onChange,
}: {
  directories: Backup
  hostName: string
  onChange: (directories: Backup) => void
}) {
  const fields = [
    {
      name: 'backup',
      label: 'Base backup',
      hint: `A directory on host "${hostName}", as pg_basebackup -Fp makes it. Leave it empty unless a recovery has named pages that are whole on no member.`,
      placeholder: '/srv/backup/base',
    },
    {
      name: 'wal',
      label: 'WAL archive',
      hint: 'A directory there with the WAL since the backup was begun, as plain files.',
      placeholder: '/srv/backup/wal',
    },
  ] as const
  return fields.map(({ name, label, hint, placeholder }) => (
    <Field
      key={name}
      label={label}
      optional
      hint={hint}
      error={
        problem(directories[name]) ??
        (name === 'backup' && directories.backup === '' && directories.wal !== ''
          ? 'A WAL archive is of use only with a base backup.'
          : undefined)
      }
    >
      {(control) => (
        <Input
          {...control}
          value={directories[name]}
          placeholder={placeholder}
          autoComplete="off"
          spellCheck={false}
          onChange={(event) => onChange({ ...directories, [name]: event.target.value })}
        />
      )}
    </Field>
  ))
}
