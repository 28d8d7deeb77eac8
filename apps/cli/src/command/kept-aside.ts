import { fault, formatBytes, type KeptAside, ownWalWords } from '@floe/domain'
import type { Command } from 'commander'
import { submitOnce } from '../console/submit-once'
import { moment, printResult, printWords, table, tell } from '../output'
import { carryOut } from './cluster'
import { findInstance, openConsole } from './find-instance'
import { type Submitting, submittingVerb, verb } from './verb'

type Client = ReturnType<typeof openConsole>

/** What is kept aside of an instance; refuses where its agent cannot say. */
async function listOf(client: Client, instance: { instanceId: string; name: string; hostName: string }) {
  const { keptAside } = await client.trpc.keptAside.list.query({ instanceId: instance.instanceId as never })
  if (keptAside === null)
    throw fault('agent.older', `the agent of host "${instance.hostName}" is of an earlier version`, {
      detail: 'It cannot keep WAL aside.',
      hint: 'Run "git pull" and "./floe up" on that host, on an enrolled one "./floe agent start".',
    })
  return keptAside
}

/** The one that is named, or the only one. */
function oneOfThem(list: readonly KeptAside[], instance: string, wanted: string | undefined): KeptAside {
  const found = wanted === undefined && list.length === 1 ? list[0] : list.find((k) => k.name === wanted)
  if (found) return found
  throw fault(
    'keep_aside.not_found',
    wanted === undefined
      ? `${list.length === 0 ? 'nothing' : 'more than one thing'} is kept aside of instance "${instance}"`
      : `nothing is kept aside of instance "${instance}" under the name "${wanted}"`,
    { hint: `Run "./floe instance kept-aside ${instance}" to see what is, and name one.` },
  )
}

const formatKept = (list: readonly KeptAside[], instance: string): string =>
  list.length === 0
    ? `Nothing is kept aside of instance "${instance}".`
    : [
        table(
          ['name', 'kept', 'only it had', 'from', 'to', 'primary', 'takes'],
          list.map((k) => [
            k.name,
            moment(k.at),
            ownWalWords(k),
            k.fromLsn,
            k.endLsn ?? 'unknown',
            `${k.primary.name} (timeline ${k.primary.timeline})`,
            formatBytes(k.fileBytes),
          ]),
        ),
        ...list.flatMap((k) => (k.unknown ? [`${k.name}: ${k.unknown}.`] : [])),
        `Read one: ./floe instance kept-aside ${instance} --dump. Remove one: ./floe instance drop-kept-aside ${instance} --confirm ${instance}.`,
      ].join('\n')

/** Prints its records piece by piece as they come. */
async function dump(client: Client, instanceId: string, kept: KeptAside, transactionsOnly: boolean) {
  for (let from: KeptAside['endLsn'] = null; ; ) {
    const piece: { records: string[]; next: KeptAside['endLsn']; stopped: string | null } =
      await client.trpc.keptAside.read.query({
        instanceId: instanceId as never,
        name: kept.name,
        from,
        transactionsOnly,
      })
    if (piece.records.length > 0) printWords(piece.records.join('\n'))
    if (piece.stopped !== null)
      if (kept.endLsn === null)
        // where the end was unknown the reader goes on until it finds no more
        tell(`the records end: ${piece.stopped}`)
      else
        throw fault('keep_aside.not_read', 'what is kept aside could not be read to its end', {
          detail: piece.stopped,
        })
    if (piece.next === null) return
    from = piece.next
  }
}

/** Verbs of what was kept aside at a rejoin: list, read, drop. */
export function addKeptAside(instance: Command): void {
  verb(
    instance,
    'kept-aside <name>',
    'show WAL that only this member had, kept aside at its rejoin',
    'Lists WAL that only this member had when it was rejoined: bytes, committed transactions, where the histories diverged. With --dump it prints the records as pg_waldump reads them.',
  )
    .option('--dump [which]', 'print the records of one; its name is required if there are several')
    .option('--transactions', 'with --dump: commits and rollbacks only')
    .action(
      async (name: string, options: { json?: boolean; dump?: string | true; transactions?: boolean }) => {
        const client = openConsole()
        const found = await findInstance(client, name)
        const list = await listOf(client, found)
        if (options.dump === undefined) {
          printResult(options.json, { keptAside: list }, () => formatKept(list, found.name))
          return
        }
        const wanted = options.dump === true ? undefined : options.dump
        await dump(
          client,
          found.instanceId,
          oneOfThem(list, found.name, wanted),
          options.transactions === true,
        )
      },
    )

  submittingVerb(
    instance,
    'drop-kept-aside <name>',
    'remove WAL that was kept aside at a rejoin',
    'Removes WAL that only this member had from its host. Its transactions are then lost.',
  )
    .requiredOption('--confirm <name>', 'the name of the instance, once more')
    .option('--which <kept>', 'which one, if there are several')
    .option('--no-wait', 'do not wait for the operation to end')
    .action(async (name: string, options: Submitting & { confirm: string; which?: string }) => {
      const client = openConsole()
      const found = await findInstance(client, name)
      const kept = oneOfThem(await listOf(client, found), found.name, options.which)
      const started = await submitOnce(options.idempotencyKey, (idempotencyKey) =>
        client.trpc.keptAside.drop.mutate({
          instanceId: found.instanceId,
          name: kept.name,
          confirmName: options.confirm,
          idempotencyKey,
        }),
      )
      await carryOut(client, started, options, () => `"${kept.name}" is removed: ${ownWalWords(kept)}.`)
    })
}
