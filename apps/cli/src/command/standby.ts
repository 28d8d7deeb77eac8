import { fault, InstanceName, type KeptAside, ownWalWords } from '@floe/domain'
import type { Command } from 'commander'
import { submitOnce } from '../console/submit-once'
import { carryOut } from './cluster'
import { findCluster, hostNamed } from './find-cluster'
import { findInstance, openConsole } from './find-instance'
import { addOrders } from './order'
import { type Submitting, submittingVerb } from './verb'

export function addStandby(program: Command): void {
  const standby = program
    .command('standby')
    .summary('create, remove, promote, rejoin and re-clone standbys')
    .description('Standbys: copies of a cluster’s primary that follow it.')

  submittingVerb(
    standby,
    'create <cluster> <name>',
    'create a standby of a cluster',
    'Copies the cluster’s primary to a new standby that follows it. A copy that fails or is cancelled leaves nothing behind.',
  )
    .option('--host <name>', 'the host to create it on (default: the one with the most free ports)')
    .option('--no-wait', 'do not wait for the operation to end')
    .action(async (clusterName: string, name: string, options: Submitting & { host?: string }) => {
      const parsed = InstanceName.safeParse(name)
      if (!parsed.success)
        throw fault('usage.instance_name', `"${name}" cannot be the name of a standby`, {
          detail: `A name ${parsed.error.issues[0]?.message}.`,
        })
      const client = openConsole()
      const { cluster } = await findCluster(client, clusterName)
      const hostId = options.host === undefined ? undefined : await hostNamed(client, options.host)
      const started = await submitOnce(options.idempotencyKey, (idempotencyKey) =>
        client.trpc.standby.create.mutate({
          clusterId: cluster.clusterId,
          name: parsed.data,
          ...(hostId ? { hostId } : {}),
          idempotencyKey,
        }),
      )
      await carryOut(client, started, options, () => `Standby "${name}" follows its primary.`)
    })

  submittingVerb(
    standby,
    'remove <name>',
    'remove a standby',
    'Stops a standby, deletes its files and drops its slot and role on the primary. A standby on a lost host is removed with --unreachable-host: its files stay there, and the instance is fenced if the host returns.',
  )
    .requiredOption('--confirm <name>', 'the name of the standby, once more')
    .option('--keep-files', 'keep its directory on the host, under another name')
    .option('--unreachable-host <name>', 'the name of its unreachable host, to remove it anyway')
    .option('--no-wait', 'do not wait for the operation to end')
    .action(
      async (
        name: string,
        options: Submitting & { confirm: string; keepFiles?: boolean; unreachableHost?: string },
      ) => {
        const client = openConsole()
        const { instanceId } = await findInstance(client, name)
        const started = await submitOnce(options.idempotencyKey, (idempotencyKey) =>
          client.trpc.standby.remove.mutate({
            instanceId,
            confirmName: options.confirm,
            keepFiles: options.keepFiles === true,
            unreachableHost: options.unreachableHost ?? null,
            idempotencyKey,
          }),
        )
        await carryOut(client, started, options, ({ left }) => {
          const there = left as { host: string; directory: string | null } | undefined
          if (!there) return `Standby "${name}" is removed.`
          return `Standby "${name}" was removed without its host: ${there.directory ?? 'whatever exists of it'} is left on "${there.host}".`
        })
      },
    )

  addOrders(standby)

  addBack(
    standby,
    'rejoin',
    'bring a fenced or broken member back as a standby',
    'Rejoins a member with pg_rewind where possible, otherwise with a new copy; the operation’s log gives the reason. WAL that only it had is first kept aside on its host ("instance kept-aside").',
  )
  addBack(
    standby,
    'reclone',
    'rebuild a standby from a new copy',
    'Replaces a standby’s data with a new copy of the primary. The former data is kept until the copy is complete, and WAL that only it had is kept aside ("instance kept-aside").',
  )
}

/** A verb that makes a member a standby again. */
function addBack(standby: Command, way: 'rejoin' | 'reclone', summary: string, about: string): void {
  submittingVerb(standby, `${way} <name>`, summary, about)
    .option('--discard-own', 'keep nothing aside: commits that only it acknowledged are lost')
    .option('--no-wait', 'do not wait for the operation to end')
    .action(async (name: string, options: Submitting & { discardOwn?: boolean }) => {
      const client = openConsole()
      const { instanceId } = await findInstance(client, name)
      const discardOwn = options.discardOwn === true
      const started = await submitOnce(options.idempotencyKey, (idempotencyKey) =>
        client.trpc.standby[way].mutate({ instanceId, discardOwn, idempotencyKey }),
      )
      await carryOut(client, started, options, (result) => {
        const how = result.rewound === true ? 'rewound' : 'rebuilt'
        const why = result.refused ? ` pg_rewind was not possible: ${result.refused}.` : ''
        return `"${name}" was ${how} and follows its primary.${why}${formatOwnWal(name, result)}`
      })
    })
}

/** What a rejoin has found that only this member had; nothing where it had none. */
function formatOwnWal(name: string, result: Record<string, unknown>): string {
  const { ownBytes, ownCommits, keptAside, discarded } = result as {
    ownBytes?: number | null
    ownCommits?: number | null
    keptAside?: KeptAside | null
    discarded?: boolean
  }
  if (ownBytes === 0 || ownBytes === undefined) return ''
  const own = ownWalWords({ bytes: ownBytes, commits: ownCommits ?? null })
  if (keptAside)
    return `\nKept aside: ${own} that only "${name}" had. Read it with "./floe instance kept-aside ${name} --dump ${keptAside.name}".`
  return discarded
    ? `\nDiscarded as requested: ${own} that only "${name}" had.`
    : '\nNothing was kept aside; the WAL that only it had is unknown.'
}
