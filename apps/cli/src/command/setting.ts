import { fault, type InstanceId, type OperationId, type SettingChange } from '@floe/domain'
import type { Command } from 'commander'
import type { ConsoleClient } from '../console/client'
import { submitOnce } from '../console/submit-once'
import { waitForOperation } from '../console/wait-for-operation'
import { moment, printResult, table } from '../output'
import { findInstance, openConsole } from './find-instance'
import { assignment, type Submitting, submittingVerb, verb, wholeNumber } from './verb'

type Verb = { json?: boolean }

export function addSetting(program: Command): void {
  const setting = program
    .command('setting')
    .summary('list and change settings')
    .description('Settings of an instance, by their PostgreSQL or PolarDB names.')

  verb(
    setting,
    'list <instance> [names...]',
    'list settings with their values',
    'Lists settings as the instance’s own binary describes them; all of them unless names or --search are given.',
  )
    .option('--search <text>', 'part of the name, the description or the category')
    .option('--changed', 'only those that differ from the default')
    .action(
      async (
        name: string,
        names: string[],
        { json, search, changed }: Verb & { search?: string; changed?: boolean },
      ) => {
        const client = openConsole()
        const { instanceId } = await findInstance(client, name)
        const answer = await client.trpc.setting.list.query({
          instanceId,
          search,
          names: names.length > 0 ? names : undefined,
        })
        const unknown = names.filter((n) => !answer.settings.some((s) => s.name === n))
        if (unknown.length > 0)
          throw fault('setting.unknown', `unrecognized configuration parameter "${unknown[0]}"`, {
            hint: `Run "./floe setting list ${name} --search …" to look for it.`,
          })
        const settings = changed
          ? answer.settings.filter((s) => s.source !== 'default' && s.source !== 'override')
          : answer.settings
        printResult(json, settings, () =>
          table(
            ['name', 'value', 'source', 'takes effect', ''],
            settings.map((s) => [
              s.name,
              s.shown ?? s.value,
              s.source,
              s.impact,
              s.pendingRestart ? 'restart pending' : ' ',
            ]),
          ),
        )
      },
    )

  submittingVerb(
    setting,
    'set <instance> <name=value...>',
    'change settings',
    'Changes settings: checked by the instance’s own binary, written, reloaded and read back. Nothing changes when one of them is refused. A value of DEFAULT goes back to the default.',
  )
    .option('--check', 'only say what would happen')
    .option('--reason <text>', 'why, for the history')
    .option('--no-wait', 'do not wait until the change is confirmed')
    .action(
      async (
        name: string,
        words: string[],
        { json, check, reason, wait, idempotencyKey: key }: Submitting & { check?: boolean; reason?: string },
      ) => {
        const changes = changesOf(words, 'setting set demo')
        const client = openConsole()
        const { instanceId } = await findInstance(client, name)
        if (check) {
          const { results } = await client.trpc.setting.check.mutate({ instanceId, changes })
          printResult(json, results, () =>
            table(
              ['name', 'old', 'new', 'takes effect', 'refused because'],
              results.map((r) => [r.name, r.oldValue, r.newValue, r.impact, r.fault?.message ?? ' ']),
            ),
          )
          if (results.some((r) => r.fault !== null)) process.exitCode = 1
          return
        }
        const { operationId } = await submitOnce(key, (idempotencyKey) =>
          client.trpc.setting.set.mutate({ instanceId, changes, reason, idempotencyKey }),
        )
        await follow(client, { instanceId, operationId, json, wait })
      },
    )

  verb(setting, 'history <instance> [name]', 'who changed which setting when')
    .option('--limit <n>', 'at most this many, newest first', wholeNumber(1, 500), 50)
    .action(
      async (name: string, settingName: string | undefined, { json, limit }: Verb & { limit: number }) => {
        const client = openConsole()
        const { instanceId } = await findInstance(client, name)
        const { changes } = await client.trpc.setting.history.query({ instanceId, name: settingName, limit })
        printResult(json, changes, () =>
          changes.length === 0
            ? 'No setting was changed through Floe.'
            : table(
                ['when', 'name', 'old', 'new', 'by', 'why', ''],
                changes.map((c) => [
                  moment(c.at),
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
    'revisions <instance>',
    'list the revisions that can be rolled back to',
    'Lists what Floe’s file of settings held after each change, newest first; the first one holds.',
  )
    .alias('states')
    .option('--limit <n>', 'at most this many', wholeNumber(1, 200), 20)
    .action(async (name: string, { json, limit }: Verb & { limit: number }) => {
      const client = openConsole()
      const { instanceId } = await findInstance(client, name)
      const { revisions } = await client.trpc.setting.revisions.query({ instanceId, limit })
      printResult(json, revisions, () =>
        revisions.length === 0
          ? 'No setting was changed through Floe.'
          : table(
              ['revision', 'when', 'by', 'why', 'going back changes'],
              revisions.map((s, i) => [
                s.revisionId,
                moment(s.at),
                s.actorName,
                s.reason ?? ' ',
                i === 0 ? '(holds now)' : s.changes.map((c) => `${c.name}=${c.value ?? 'DEFAULT'}`).join(' '),
              ]),
            ),
      )
    })

  submittingVerb(
    setting,
    'roll-back <instance> <revision>',
    'roll back to an earlier revision',
    'Rolls back to a revision of "./floe setting revisions": checked, confirmed and recorded like any change.',
  )
    .option('--reason <text>', 'why, for the history')
    .option('--no-wait', 'do not wait until the change is confirmed')
    .action(
      async (
        name: string,
        revisionId: string,
        { json, reason, wait, idempotencyKey: key }: Submitting & { reason?: string },
      ) => {
        const client = openConsole()
        const { instanceId } = await findInstance(client, name)
        const { operationId } = await submitOnce(key, (idempotencyKey) =>
          client.trpc.setting.rollBack.mutate({ instanceId, revisionId, reason, idempotencyKey }),
        )
        await follow(client, { instanceId, operationId, json, wait })
      },
    )

  verb(
    setting,
    'drift <instance>',
    'show configuration drift',
    'Shows what files set otherwise than Floe left them: edits by hand and ALTER SYSTEM.',
  ).action(async (name: string, { json }: Verb) => {
    const client = openConsole()
    const { instanceId } = await findInstance(client, name)
    const { drift } = await client.trpc.setting.drift.query({ instanceId })
    printResult(json, drift, () =>
      drift.length === 0
        ? 'No configuration drift.'
        : table(
            ['name', 'file', 'line', 'was', 'is'],
            drift.map((d) => [d.name, d.file, d.line, d.was ?? 'not set', d.is ?? 'not set']),
          ),
    )
  })

  for (const how of ['adopt', 'revert'] as const)
    submittingVerb(
      setting,
      `${how} <instance>`,
      how === 'adopt' ? 'adopt configuration drift' : 'revert configuration drift',
      how === 'adopt'
        ? 'Keeps what was changed outside Floe; what ALTER SYSTEM set moves into Floe’s file.'
        : 'Restores what Floe wrote: undoes edits of files and ALTER SYSTEM.',
    )
      .option('--reason <text>', 'why, for the history')
      .option('--no-wait', 'do not wait until it is confirmed')
      .action(
        async (
          name: string,
          { json, reason, wait, idempotencyKey: key }: Submitting & { reason?: string },
        ) => {
          const client = openConsole()
          const { instanceId } = await findInstance(client, name)
          const { operationId } = await submitOnce(key, (idempotencyKey) =>
            client.trpc.setting[how].mutate({ instanceId, reason, idempotencyKey }),
          )
          await follow(client, { instanceId, operationId, json, wait })
        },
      )
}

/** `name=value` words as changes; DEFAULT goes back to the default. `example` begins the example of a mistake. */
export function changesOf(words: readonly string[], example: string): SettingChange[] {
  let values: Record<string, string> = {}
  for (const word of words) {
    if (word.indexOf('=') < 1)
      throw fault('usage.assignment', `"${word}" is not name=value`, {
        hint: `Example: ./floe ${example} work_mem=8MB`,
      })
    values = assignment(word, values)
  }
  return Object.entries(values).map(([name, value]) => ({
    name,
    value: value.toUpperCase() === 'DEFAULT' ? null : value,
  }))
}

/** Waits for an operation on settings and shows what the instance confirmed. */
async function follow(
  client: ConsoleClient,
  o: { instanceId: InstanceId; operationId: OperationId; json: boolean | undefined; wait: boolean },
): Promise<void> {
  const { instanceId, operationId, json } = o
  if (!o.wait) {
    printResult(json, { operationId }, () => `Operation ${operationId} was started.`)
    return
  }
  const operation = await waitForOperation(client, operationId)
  const history = await client.trpc.setting.history.query({ instanceId, limit: 500 })
  const confirmed = history.changes.filter((c) => c.operationId === operationId)
  printResult(json, { operationId, state: operation.state, confirmed }, () =>
    confirmed.length === 0
      ? 'Nothing changed: the settings have these values already.'
      : table(
          ['name', 'old', 'confirmed', ''],
          confirmed.map((c) => [c.name, c.oldValue, c.newValue, c.pendingRestart ? 'after a restart' : ' ']),
        ),
  )
}
