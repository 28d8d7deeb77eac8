import { fault } from '@floe/domain'
import type { Command } from 'commander'
import { waitForOperation } from '../console/wait-for-operation'
import { moment, printResult, table } from '../output'
import { findInstance, openConsole } from './find-instance'
import { assignment, verb, wholeNumber } from './verb'

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

  verb(
    setting,
    'set <instance> <name=value...>',
    'change settings',
    'Changes settings: checked by the instance’s own binary, written, reloaded and read back. Nothing changes when one of them is refused. A value of DEFAULT goes back to the default.',
  )
    .option('--check', 'only say what would happen')
    .option('--no-wait', 'do not wait until the change is confirmed')
    .action(
      async (
        name: string,
        words: string[],
        { json, check, wait }: Verb & { check?: boolean; wait: boolean },
      ) => {
        let values: Record<string, string> = {}
        for (const word of words) {
          if (word.indexOf('=') < 1)
            throw fault('usage.assignment', `"${word}" is not name=value`, {
              hint: 'Example: ./floe setting set demo work_mem=8MB',
            })
          values = assignment(word, values)
        }
        const changes = Object.entries(values).map(([n, v]) => ({
          name: n,
          value: v.toUpperCase() === 'DEFAULT' ? null : v,
        }))
        const client = openConsole()
        const { instanceId } = await findInstance(client, name)
        if (check) {
          const { results } = await client.trpc.setting.check.query({ instanceId, changes })
          printResult(json, results, () =>
            table(
              ['name', 'old', 'new', 'takes effect', 'refused because'],
              results.map((r) => [r.name, r.oldValue, r.newValue, r.impact, r.fault?.message ?? ' ']),
            ),
          )
          if (results.some((r) => r.fault !== null)) process.exitCode = 1
          return
        }
        const { operationId } = await client.trpc.setting.set.mutate({ instanceId, changes })
        if (!wait) {
          printResult(json, { operationId }, () => `Operation ${operationId} was started.`)
          return
        }
        const operation = await waitForOperation(client, operationId)
        const history = await client.trpc.setting.history.query({ instanceId, limit: 500 })
        const confirmed = history.changes.filter((c) => c.operationId === operationId)
        printResult(json, { operationId, state: operation.state, confirmed }, () =>
          table(
            ['name', 'old', 'confirmed', ''],
            confirmed.map((c) => [
              c.name,
              c.oldValue,
              c.newValue,
              c.pendingRestart ? 'after a restart' : ' ',
            ]),
          ),
        )
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
                ['when', 'name', 'old', 'new', 'by', ''],
                changes.map((c) => [
                  moment(c.at),
                  c.name,
                  c.oldValue,
                  c.newValue,
                  c.actorName,
                  c.pendingRestart ? 'restart pending' : ' ',
                ]),
              ),
        )
      },
    )
}
