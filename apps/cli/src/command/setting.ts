import {
  FaultError,
  fault,
  formatFault,
  type OperationId,
  type SettingChange,
  type SettingScope,
} from '@floe/domain'
import type { RouterOutputs } from '@floe/web/api'
import type { Command } from 'commander'
import type { ConsoleClient } from '../console/client'
import { submitOnce } from '../console/submit-once'
import { waitForOperation } from '../console/wait-for-operation'
import { moment, printResult, table } from '../output'
import { findCluster } from './find-cluster'
import { findInstance, openConsole } from './find-instance'
import { assignment, type Submitting, submittingVerb, verb, wholeNumber } from './verb'

/** What every verb accepts. */
type Named = { json?: boolean; cluster?: boolean }
type Ordered = Submitting & { cluster?: boolean; check?: boolean; reason?: string }
type Check = RouterOutputs['setting']['check']
type Revision = RouterOutputs['setting']['revisions']['revisions'][number]

/** `./floe setting …`: of an instance, or with --cluster of all members of a cluster. */
export function addSetting(program: Command): void {
  const setting = program
    .command('setting')
    .summary('list and change settings')
    .description(
      'Settings by their PostgreSQL or PolarDB names: of an instance, or with --cluster of all members of a cluster together.',
    )
  addVerbs(setting, false)
  addResolve(setting)
}

/** `./floe cluster setting VERB NAME` is `./floe setting VERB --cluster NAME`. */
export function addClusterSetting(cluster: Command): void {
  const setting = cluster
    .command('setting')
    .summary('list and change settings of all members')
    .description(
      'Settings across a cluster, as "./floe setting … --cluster": changed on all members in the order that keeps standbys replaying, and rolled back on all members when one fails.',
    )
  addVerbs(setting, true)
}

/** The verbs of both; `ofCluster` where every name is a cluster's, without an option that says so. */
function addVerbs(setting: Command, ofCluster: boolean): void {
  const who = ofCluster ? '<cluster>' : '<name>'
  const named = (command: Command): Command =>
    ofCluster
      ? command.setOptionValue('cluster', true)
      : command.option('--cluster', 'of all members of the cluster of this name')
  const ordered = (command: Command): Command =>
    named(command)
      .option('--check', 'only say what would happen, and in which order')
      .option('--reason <text>', 'why, for the history')
      .option('--no-wait', 'do not wait until the change is confirmed')

  named(
    verb(
      setting,
      `list ${who} [names...]`,
      'list settings with their values',
      'Lists settings as each member’s own binary describes them. Without names or options: of an instance all of them; of a cluster those whose order matters, those that Floe set, and those that differ.',
    ),
  )
    .option('--search <text>', 'part of the name, the description or the category')
    .option('--changed', 'only those that differ from the default')
    .option('--all', 'of a cluster, all of them')
    .action(listSettings)

  ordered(
    submittingVerb(
      setting,
      `set ${who} <name=value...>`,
      'change settings',
      'Changes settings: checked by the binary of every member, written, reloaded and read back. Nothing changes when one of them is refused. A cluster’s members take them in order, with restarts where they are needed; what fails puts all members back. A value of DEFAULT goes back to the default.',
    ),
  )
    .option('--no-restart', 'of a cluster: let what needs a restart wait for the next one')
    .action(async (name: string, words: string[], options: Ordered & { restart: boolean }) => {
      const changes = changesOf(words, `${ofCluster ? 'cluster ' : ''}setting set demo`)
      const { restart, reason } = options
      const { client, scope } = await open(name, options)
      if (options.check)
        return printCheck(await client.trpc.setting.check.mutate({ scope, changes, restart }), scope, options)
      const started = await submitOnce(options.idempotencyKey, (idempotencyKey) =>
        client.trpc.setting.set.mutate({ scope, changes, restart, reason, idempotencyKey }),
      )
      await follow(client, scope, started.operationId, options)
    })

  named(verb(setting, `history ${who} [name]`, 'who changed which setting when, and why'))
    .option('--limit <n>', 'at most this many, newest first', wholeNumber(1, 500), 50)
    .action(async (name: string, settingName: string | undefined, options: Named & { limit: number }) => {
      const { client, scope } = await open(name, options)
      const { limit } = options
      const { members, changes } = await client.trpc.setting.history.query({
        scope,
        name: settingName,
        limit,
      })
      const columns = columnsFor(members.length)
      printResult(options.json, changes, () =>
        changes.length === 0
          ? 'No setting was changed through Floe.'
          : table(
              ['when', ...columns('member'), 'name', 'old', 'new', 'by', 'why', ''],
              changes.map((c) => [
                moment(c.at),
                ...columns(c.instanceName),
                c.name,
                c.oldValue,
                c.newValue,
                c.actorName,
                c.reason ?? ' ',
                c.pendingRestart ? 'restart pending' : ' ',
              ]),
            ),
      )
    })

  // the second is how scripts of earlier versions call it
  for (const spelling of ['revisions', 'states'])
    named(
      verb(
        setting,
        `${spelling} ${who}`,
        'list the revisions that can be rolled back to',
        'Lists what Floe’s files of settings held after each change, newest first; the first one is current.',
        { hidden: spelling === 'states' },
      ),
    )
      .option('--limit <n>', 'at most this many', wholeNumber(1, 200), 20)
      .action(async (name: string, options: Named & { limit: number }) => {
        const { client, scope } = await open(name, options)
        const { members, revisions } = await client.trpc.setting.revisions.query({
          scope,
          limit: options.limit,
        })
        const columns = columnsFor(members.length)
        printResult(options.json, spelling === 'states' ? revisions.map(asState) : revisions, () =>
          revisions.length === 0
            ? 'No setting was changed through Floe.'
            : table(
                ['revision', 'when', 'by', 'why', ...columns('changed'), 'rolling back changes'],
                revisions.map((r, i) => [
                  r.revisionId,
                  moment(r.at),
                  r.actorName,
                  r.reason ?? ' ',
                  ...columns(r.changed.join(', ')),
                  i === 0 ? '(current)' : wayBackWords(r) || 'nothing',
                ]),
              ),
        )
      })

  ordered(
    submittingVerb(
      setting,
      `roll-back ${who} <revision>`,
      'roll back to an earlier revision',
      `Rolls back to a revision of "./floe ${ofCluster ? 'cluster ' : ''}setting revisions": checked, applied, confirmed and recorded like any change.`,
    ).alias('rollback'),
  ).action(async (name: string, revisionId: string, options: Ordered) => {
    const { client, scope } = await open(name, options)
    if (options.check)
      return printCheck(await client.trpc.setting.check.mutate({ scope, revisionId }), scope, options)
    const { reason } = options
    const started = await submitOnce(options.idempotencyKey, (idempotencyKey) =>
      client.trpc.setting.rollBack.mutate({ scope, revisionId, reason, idempotencyKey }),
    )
    await follow(client, scope, started.operationId, options)
  })

  named(
    verb(
      setting,
      `drift ${who}`,
      'show configuration drift',
      'Shows what files set otherwise than Floe left them: edits by hand and ALTER SYSTEM.',
    ),
  ).action(async (name: string, options: Named) => {
    const { client, scope } = await open(name, options)
    const { members, drift } = await client.trpc.setting.drift.query({ scope })
    const columns = columnsFor(members.length)
    printResult(options.json, drift, () =>
      drift.length === 0
        ? 'No configuration drift.'
        : table(
            [...columns('member'), 'name', 'file', 'line', 'was', 'is'],
            drift.map((d) => [
              ...columns(d.instanceName),
              d.name,
              d.file,
              d.line,
              d.was ?? 'not set',
              d.is ?? 'not set',
            ]),
          ),
    )
  })
}

/** Drift is resolved where it is: on one instance. */
function addResolve(setting: Command): void {
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
      .action(async (name: string, options: Submitting & { reason?: string }) => {
        const client = openConsole()
        const { instanceId } = await findInstance(client, name)
        const { operationId } = await submitOnce(options.idempotencyKey, (idempotencyKey) =>
          client.trpc.setting[how].mutate({ instanceId, reason: options.reason, idempotencyKey }),
        )
        await follow(client, { instanceId }, operationId, options)
      })
}

/** The console, and whom a name means there. */
async function open(
  name: string,
  { cluster }: Named,
): Promise<{ client: ConsoleClient; scope: SettingScope }> {
  const client = openConsole()
  if (!cluster) return { client, scope: { instanceId: (await findInstance(client, name)).instanceId } }
  return { client, scope: { clusterId: (await findCluster(client, name)).cluster.clusterId } }
}

/** A column that a table has only where there is more than one member. */
const columnsFor =
  (members: number) =>
  (cell: string): string[] =>
    members > 1 ? [cell] : []

const inWords = (changes: readonly { name: string; value: string | null }[]) =>
  changes.map((c) => `${c.name}=${c.value ?? 'DEFAULT'}`).join(' ')

async function listSettings(
  name: string,
  names: string[],
  options: Named & { search?: string; changed?: boolean; all?: boolean },
): Promise<void> {
  const { search, changed } = options
  const { client, scope } = await open(name, options)
  const answer = await client.trpc.setting.list.query({
    scope,
    search,
    names: names.length > 0 ? names : undefined,
  })
  const { members } = answer
  const unknown = names.find((n) => !answer.settings.some((s) => s.name === n))
  if (unknown !== undefined && members.every((m) => m.fault === null))
    throw fault('setting.unknown', `unrecognized configuration parameter "${unknown}"`, {
      hint: `Run "./floe setting list ${members[0]?.name} --search …" to look for it.`,
    })
  const chosen = names.length > 0 || search !== undefined || changed || options.all
  const settings = answer.settings.filter(
    (s) =>
      (chosen || 'instanceId' in scope || s.notable) &&
      (!changed || s.values.some((v) => v && v.source !== 'default' && v.source !== 'override')),
  )
  const several = members.length > 1
  // of an instance alone the values stand beside the name
  const json =
    'instanceId' in scope
      ? settings.map((s) => ({ ...s, ...s.values[0] }))
      : { ...answer, settings: settings }
  printResult(options.json, json, () =>
    [
      table(
        ['name', ...(several ? members.map((m) => m.name) : ['value', 'source']), 'takes effect', ''],
        settings.map((s) => [
          s.name,
          ...s.values.map((v) =>
            v ? (names.length > 0 ? (v.shown ?? '–') : beginningOf(v.shown ?? '–')) : '?',
          ),
          ...(several ? [] : [s.values[0]?.source ?? ' ']),
          s.impact,
          notesOn(s, members, several) || ' ',
        ]),
      ),
      ...members.flatMap((m) => (m.fault ? ['', `${m.name}: ${formatFault(m.fault)}`] : [])),
    ].join('\n'),
  )
}

/** Of a long value its beginning, so that the lines of a list fit; anyone who names the setting sees all of it. */
const beginningOf = (text: string) => (text.length > 60 ? `${text.slice(0, 59)}…` : text)

/** What a line of the list says at its end. */
function notesOn(
  s: RouterOutputs['setting']['list']['settings'][number],
  members: readonly { name: string }[],
  several: boolean,
): string {
  const pending = s.values.flatMap((v, i) =>
    v && v.pending !== null ? [`${several ? `${members[i]?.name} ` : ''}after a restart: ${v.pending}`] : [],
  )
  const across = !several
    ? []
    : s.tooSmallOn.length > 0
      ? [`TOO SMALL on ${s.tooSmallOn.join(', ')}`]
      : [...(s.differs ? ['differs'] : []), ...(s.ordered ? ['in order'] : [])]
  return [...across, ...pending].join(', ')
}

const phaseWords: Record<Check['phases'][number]['phase'], string> = {
  standbys: 'standbys first',
  primary: 'primary',
  replayed: 'standbys, once they replayed that',
}

function printCheck(check: Check, scope: SettingScope, { json }: Named): void {
  const [only] = check.members
  const alone = 'instanceId' in scope
  if (alone && only?.fault) throw new FaultError(only.fault)
  const columns = columnsFor(check.members.length)
  printResult(json, alone ? only?.results : check, () =>
    [
      table(
        [...columns('member'), 'name', 'old', 'new', 'takes effect'],
        check.members.flatMap((m) =>
          m.results.map((r) => [...columns(m.name), r.name, r.oldValue, r.newValue, r.impact]),
        ),
      ),
      ...(alone
        ? []
        : [
            '',
            table(
              ['order', 'member', 'changes', 'restart'],
              check.phases.flatMap((p) =>
                p.members.map((m) => [
                  phaseWords[p.phase],
                  m.name,
                  inWords(m.changes),
                  m.restart ? 'yes' : 'no',
                ]),
              ),
            ),
          ]),
      ...(check.notes.length > 0 && check.faults.length === 0 ? ['', ...check.notes] : []),
      ...(check.faults.length > 0 ? [] : check.warnings).map((w) => `\nWARNING: ${formatFault(w)}`),
      ...check.faults.map((f) => `\nREFUSED: ${formatFault(f)}`),
    ].join('\n'),
  )
  if (check.faults.length > 0) process.exitCode = 1
}

/** What rolling back to a revision changes, by member where there are several. */
function wayBackWords({ members }: Revision): string {
  return members
    .filter((m) => m.changes.length > 0)
    .map((m) => (members.length > 1 ? `${m.name}: ` : '') + inWords(m.changes))
    .join('; ')
}

/** A revision as `setting states --json` printed it. */
function asState({ revisionId, ...revision }: Revision) {
  const [only, ...others] = revision.members
  const ofOne = only && others.length === 0 ? { managed: only.managed, changes: only.changes } : {}
  return { stateId: revisionId, ...revision, ...ofOne }
}

/** `name=value` words as changes; DEFAULT goes back to the default. `example` begins the example of a mistake. */
function changesOf(words: readonly string[], example: string): SettingChange[] {
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

/** Waits for an operation on settings and shows what every member confirmed. */
export async function follow(
  client: ConsoleClient,
  scope: SettingScope,
  operationId: OperationId,
  { json, wait }: Submitting,
): Promise<void> {
  if (!wait) {
    printResult(json, { operationId }, () => `Operation ${operationId} was started.`)
    return
  }
  const operation = await waitForOperation(client, operationId)
  const history = await client.trpc.setting.history.query({ scope, limit: 500 })
  const confirmed = history.changes.filter((c) => c.operationId === operationId)
  const columns = columnsFor(history.members.length)
  printResult(json, { operationId, state: operation.state, confirmed }, () =>
    confirmed.length === 0
      ? 'Nothing changed: the settings have these values already.'
      : table(
          [...columns('member'), 'name', 'old', 'confirmed', ''],
          confirmed.map((c) => [
            ...columns(c.instanceName),
            c.name,
            c.oldValue,
            c.newValue,
            c.pendingRestart ? 'after a restart' : ' ',
          ]),
        ),
  )
}
