import { type ClusterId, fault, formatFault, type OperationId } from '@floe/domain'
import type { RouterOutputs } from '@floe/web/api'
import type { Command } from 'commander'
import type { ConsoleClient } from '../console/client'
import { submitOnce } from '../console/submit-once'
import { waitForOperation } from '../console/wait-for-operation'
import { moment, printResult, table } from '../output'
import { findCluster } from './find-cluster'
import { openConsole } from './find-instance'
import { changesOf } from './setting'
import { type Submitting, submittingVerb, verb, wholeNumber } from './verb'

type Verb = { json?: boolean }
type Check = RouterOutputs['clusterSetting']['check']

const inWords = (changes: readonly { name: string; value: string | null }[]) =>
  changes.map((c) => `${c.name}=${c.value ?? 'DEFAULT'}`).join(' ')

const phaseWords: Record<Check['phases'][number]['phase'], string> = {
  standbys: 'standbys first',
  primary: 'primary',
  replayed: 'standbys, once they replayed that',
}

/** Settings of all members of a cluster together. */
export function addClusterSetting(cluster: Command): void {
  const setting = cluster
    .command('setting')
    .summary('list and change settings of all members')
    .description(
      'Settings across a cluster: changed on all members in the order that keeps standbys replaying, and put back everywhere when one of them fails.',
    )
  addLook(setting)
  addChange(setting)
}

function addLook(setting: Command): void {
  verb(
    setting,
    'list <cluster> [names...]',
    'list what each member has',
    'Lists settings member by member: those whose order matters, those that Floe set, and those that differ; or the ones named.',
  ).action(async (name: string, names: string[], { json }: Verb) => {
    const client = openConsole()
    const { clusterId } = (await findCluster(client, name)).cluster
    const answer = await client.trpc.clusterSetting.list.query({
      clusterId,
      names: names.length > 0 ? names : undefined,
    })
    const unknown = names.find((n) => !answer.settings.some((s) => s.name === n))
    if (unknown !== undefined && answer.members.every((m) => m.fault === null))
      throw fault('setting.unknown', `unrecognized configuration parameter "${unknown}"`, {
        hint: `Run "./floe setting list ${answer.members[0]?.name} --search …" to look for it.`,
      })
    printResult(json, answer, () =>
      [
        table(
          ['name', ...answer.members.map((m) => m.name), 'takes effect', ''],
          answer.settings.map((s) => [
            s.name,
            ...s.values.map((v) =>
              v ? `${v.shown}${v.pending === null ? '' : ` (after a restart: ${v.pending})`}` : '?',
            ),
            s.impact,
            s.tooSmallOn.length > 0
              ? `TOO SMALL on ${s.tooSmallOn.join(', ')}`
              : [s.differs ? 'differs' : '', s.ordered ? 'in order' : ''].filter(Boolean).join(', ') || ' ',
          ]),
        ),
        ...answer.members.flatMap((m) => (m.fault ? ['', `${m.name}: ${formatFault(m.fault)}`] : [])),
      ].join('\n'),
    )
  })

  verb(setting, 'history <cluster> [name]', 'who changed which setting on which member when')
    .option('--limit <n>', 'at most this many, newest first', wholeNumber(1, 500), 50)
    .action(
      async (name: string, settingName: string | undefined, { json, limit }: Verb & { limit: number }) => {
        const client = openConsole()
        const { clusterId } = (await findCluster(client, name)).cluster
        const { changes } = await client.trpc.clusterSetting.history.query({
          clusterId,
          name: settingName,
          limit,
        })
        printResult(json, changes, () =>
          changes.length === 0
            ? 'No setting was changed through Floe.'
            : table(
                ['when', 'member', 'name', 'old', 'new', 'by', 'why', ''],
                changes.map((c) => [
                  moment(c.at),
                  c.instanceName,
                  c.name,
                  c.oldValue,
                  c.newValue,
                  c.actorName,
                  c.reason ?? ' ',
                  c.pendingRestart ? 'restart pending' : ' ',
                ]),
              ),
        )
      },
    )

  verb(
    setting,
    'revisions <cluster>',
    'list the revisions that can be rolled back to',
    'Lists what Floe’s files held on the members after each operation, newest first; the first one holds.',
  )
    .alias('states')
    .option('--limit <n>', 'at most this many', wholeNumber(1, 200), 20)
    .action(async (name: string, { json, limit }: Verb & { limit: number }) => {
      const client = openConsole()
      const { clusterId } = (await findCluster(client, name)).cluster
      const { revisions } = await client.trpc.clusterSetting.revisions.query({ clusterId, limit })
      printResult(json, revisions, () =>
        revisions.length === 0
          ? 'No setting was changed through Floe.'
          : table(
              ['revision', 'when', 'by', 'why', 'changed', 'going back changes'],
              revisions.map((s, i) => [
                s.revisionId,
                moment(s.at),
                s.actorName,
                s.reason ?? ' ',
                s.changed.join(', '),
                i === 0
                  ? '(holds now)'
                  : s.members
                      .filter((m) => m.changes.length > 0)
                      .map((m) => `${m.name}: ${inWords(m.changes)}`)
                      .join('; ') || 'nothing',
              ]),
            ),
      )
    })
}

function printCheck(check: Check, json: boolean | undefined): void {
  printResult(json, check, () =>
    [
      table(
        ['member', 'name', 'old', 'new', 'takes effect'],
        check.members.flatMap((m) =>
          m.results.map((r) => [m.name, r.name, r.oldValue, r.newValue, r.impact]),
        ),
      ),
      '',
      table(
        ['order', 'member', 'changes', 'restart'],
        check.phases.flatMap((p) =>
          p.members.map((m) => [phaseWords[p.phase], m.name, inWords(m.changes), m.restart ? 'yes' : 'no']),
        ),
      ),
      ...(check.notes.length > 0 ? ['', ...check.notes] : []),
      ...check.faults.map((f) => `\nREFUSED: ${formatFault(f)}`),
    ].join('\n'),
  )
  if (check.faults.length > 0) process.exitCode = 1
}

function addChange(setting: Command): void {
  submittingVerb(
    setting,
    'set <cluster> <name=value...>',
    'change settings on all members',
    'Changes settings on all members: checked by every member’s own binary, applied in order with restarts where they are needed, read back from each. What fails puts all members back. A value of DEFAULT goes back to the default.',
  )
    .option('--check', 'only say what would happen, and in which order')
    .option('--no-restart', 'let what needs a restart wait for the next one')
    .option('--reason <text>', 'why, for the history')
    .option('--no-wait', 'do not wait until the change is confirmed')
    .action(
      async (
        name: string,
        words: string[],
        options: Submitting & { check?: boolean; restart: boolean; reason?: string },
      ) => {
        const changes = changesOf(words, 'cluster setting set demo')
        const client = openConsole()
        const { clusterId } = (await findCluster(client, name)).cluster
        if (options.check)
          return printCheck(
            await client.trpc.clusterSetting.check.mutate({ clusterId, changes }),
            options.json,
          )
        const { restart, reason } = options
        const started = await submitOnce(options.idempotencyKey, (idempotencyKey) =>
          client.trpc.clusterSetting.set.mutate({ clusterId, changes, restart, reason, idempotencyKey }),
        )
        await follow(client, clusterId, started.operationId, options)
      },
    )

  submittingVerb(
    setting,
    'roll-back <cluster> <revision>',
    'take all members back to an earlier revision',
    'Rolls back to a revision of "./floe cluster setting revisions": checked, applied in order, confirmed and recorded like any change.',
  )
    .alias('rollback')
    .option('--check', 'only say what would happen, and in which order')
    .option('--reason <text>', 'why, for the history')
    .option('--no-wait', 'do not wait until the change is confirmed')
    .action(
      async (
        name: string,
        revisionId: string,
        options: Submitting & { check?: boolean; reason?: string },
      ) => {
        const client = openConsole()
        const { clusterId } = (await findCluster(client, name)).cluster
        if (options.check)
          return printCheck(
            await client.trpc.clusterSetting.check.mutate({ clusterId, revisionId }),
            options.json,
          )
        const { reason } = options
        const started = await submitOnce(options.idempotencyKey, (idempotencyKey) =>
          client.trpc.clusterSetting.rollBack.mutate({ clusterId, revisionId, reason, idempotencyKey }),
        )
        await follow(client, clusterId, started.operationId, options)
      },
    )
}

/** Waits for the operation and shows what every member confirmed. */
async function follow(
  client: ConsoleClient,
  clusterId: ClusterId,
  operationId: OperationId,
  { json, wait }: Submitting,
): Promise<void> {
  if (!wait) {
    printResult(json, { operationId }, () => `Operation ${operationId} was started.`)
    return
  }
  const operation = await waitForOperation(client, operationId)
  const history = await client.trpc.clusterSetting.history.query({ clusterId, limit: 500 })
  const confirmed = history.changes.filter((c) => c.operationId === operationId)
  printResult(json, { operationId, state: operation.state, confirmed }, () =>
    confirmed.length === 0
      ? 'Nothing changed: the settings have these values already.'
      : table(
          ['member', 'name', 'old', 'confirmed', ''],
          confirmed.map((c) => [
            c.instanceName,
            c.name,
            c.oldValue,
            c.newValue,
            c.pendingRestart ? 'after a restart' : ' ',
          ]),
        ),
  )
}
