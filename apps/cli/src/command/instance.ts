import {
  apartTitle,
  connectionForms,
  decodePoints,
  exactBytes,
  FaultError,
  fault,
  InstanceName,
  NO_PAGE_REPAIR,
  powerFailureCover,
  protectionWords,
  requiresTls,
  withoutTlsWarning,
} from '@floe/domain'
import type { Command } from 'commander'
import { submitOnce } from '../console/submit-once'
import { waitForOperation } from '../console/wait-for-operation'
import { duration, moment, printResult, table, tell } from '../output'
import { addConnections } from './connections'
import { findHost } from './find-host'
import { findInstance, type InstanceDetail, openConsole } from './find-instance'
import { addLimit, limitOptions, limitsAsked } from './instance-limit'
import { addKeptAside } from './kept-aside'
import { addOrders } from './order'
import { addProfile } from './profile'
import { assignment, type Submitting, submittingVerb, verb } from './verb'

type Verb = { json?: boolean }

/** Of an instance that was never made there is no state that could be old. */
const formatState = (i: Pick<InstanceDetail, 'state' | 'creationFailed'>) =>
  i.creationFailed ? 'creation failed' : i.state

function warningOf(i: InstanceDetail): string[] {
  const warning = withoutTlsWarning(i.remoteAccess)
  return warning === null ? [] : [`tls ${warning} "./floe instance require-tls ${i.name}" requires it.`]
}

function formatInstance(i: InstanceDetail): string {
  return [
    `name          ${i.name}`,
    `state         ${formatState(i)}${i.because ? ` (${i.because})` : ''}`,
    `role          ${i.role ?? '–'}`,
    `host          ${i.hostName} (${i.hostState})`,
    `port          ${i.port ?? '–'}`,
    `engine        ${i.engineVersion ?? '–'}`,
    `directory     ${i.directory ?? '–'}`,
    `up since      ${moment(i.startedAt)}`,
    `seen          ${i.ageMs === null ? 'never' : `${duration(i.ageMs)} ago`}${i.stale ? ' (stale)' : ''}`,
    `restart due   ${i.pendingRestart.length === 0 ? 'no' : `for ${i.pendingRestart.join(', ')}`}`,
    `connect       ${i.forms?.psql ?? '–'}`,
    `deletion      ${i.cluster.deletionProtected ? 'protected' : 'not protected'}`,
    ...warningOf(i),
    `id            ${i.instanceId}`,
  ].join('\n')
}

function addCreate(instance: Command): void {
  limitOptions(
    submittingVerb(
      instance,
      'create <name>',
      'create an instance and start it',
      'Creates an instance, starts it, and prints how to connect. The password is shown this once and stored nowhere.',
    ),
  )
    .option('--set <name=value>', 'a setting written before the first start (may be repeated)', assignment)
    .option('--host <name>', 'the host to create it on (default: the one with the most free ports)')
    .option('--no-wait', 'do not wait until it runs')
    .action(async (name: string, options: Submitting & { set?: Record<string, string>; host?: string }) => {
      const limits = limitsAsked(options)
      const parsed = InstanceName.safeParse(name)
      if (!parsed.success)
        throw fault('usage.instance_name', `"${name}" cannot be the name of an instance`, {
          detail: `A name ${parsed.error.issues[0]?.message}.`,
        })
      const client = openConsole()
      const hostId =
        options.host === undefined ? undefined : (await findHost(client, options.host)).host.hostId
      if (options.set !== undefined && Object.keys(options.set).length > 0) {
        const asked = { settings: options.set, ...(hostId === undefined ? {} : { hostId }) }
        const { results } = await client.trpc.instance.check.mutate(asked)
        const refused = results.find((r) => r.fault !== null)?.fault
        if (refused) throw new FaultError(refused)
      }
      const made = await submitOnce(options.idempotencyKey, (idempotencyKey) =>
        client.trpc.instance.create.mutate({
          name: parsed.data,
          settings: options.set ?? {},
          ...(Object.keys(limits).length === 0 ? {} : { limits }),
          ...(hostId === undefined ? {} : { hostId }),
          idempotencyKey,
        }),
      )
      const { operationId, instanceId, user, database, password } = made
      if (!options.wait) {
        printResult(options.json, { operationId, instanceId, name, user, database, password }, () =>
          [
            `Operation ${operationId} creates instance "${name}".`,
            password === null
              ? `The password of "${user}" was shown at the first request.`
              : `Password of "${user}" (shown only now): ${password}`,
          ].join('\n'),
        )
        return
      }
      try {
        await waitForOperation(client, operationId)
      } catch (error) {
        tell(`operation ${operationId} did not create the instance; "./floe operation show" explains`)
        throw error
      }
      const detail = await findInstance(client, instanceId)
      if (detail.connection === null)
        throw fault('instance.no_connection', `instance "${name}" runs, but its port is not known yet`, {
          hint: `Run "./floe instance show ${name}".`,
        })
      const forms = connectionForms(detail.connection, password, requiresTls(detail.remoteAccess))
      const result = {
        instanceId,
        name,
        state: detail.state,
        host: detail.connection.host,
        port: detail.connection.port,
        user,
        database,
        password,
        connectionString: forms.uri,
        ...forms,
        directory: detail.directory,
        engineVersion: detail.engineVersion,
        operationId,
      }
      printResult(options.json, result, () =>
        [
          `Instance "${name}" is ${detail.state} on port ${detail.port}.`,
          password === null
            ? 'Connect (the password was shown at the first request):'
            : 'Connect (the password is shown only now):',
          `  ${forms.psql}`,
          `  ${forms.jdbc}`,
        ].join('\n'),
      )
    })
}

function addLook(instance: Command): void {
  verb(instance, 'list', 'list the instances')
    .option('--search <text>', 'part of a name, of a host’s name, or a port')
    .action(async ({ json, search }: Verb & { search?: string }) => {
      const { instances } = await openConsole().trpc.instance.list.query(
        search === undefined ? {} : { search },
      )
      const told = instances.map((i) => ({ ...i, tps: decodePoints(i.tps) }))
      printResult(json, told, () =>
        instances.length === 0
          ? 'There are no instances. "./floe instance create <name>" makes one.'
          : table(
              ['name', 'state', 'role', 'host', 'port', 'engine', 'tps', 'seen'],
              told.map((i) => {
                const tps = i.tps.at(-1)?.value
                return [
                  i.name,
                  i.stale && !i.creationFailed ? `${i.state} (stale)` : formatState(i),
                  i.role,
                  i.hostName,
                  i.port,
                  i.engineVersion,
                  tps === null || tps === undefined ? null : Math.round(tps),
                  i.ageMs === null ? 'never' : `${duration(i.ageMs)} ago`,
                ]
              }),
            ),
      )
    })
  verb(instance, 'show <name>', 'show an instance').action(async (name: string, { json }: Verb) => {
    const detail = await findInstance(openConsole(), name)
    const told = { ...detail, tps: decodePoints(detail.tps), connectionString: detail.forms?.uri ?? null }
    printResult(json, told, () => formatInstance(detail))
  })
}

function coverOf(protection: Parameters<typeof powerFailureCover>[0]): string[] {
  const cover = powerFailureCover(protection)
  return cover ? [`cover         ${cover.title}. ${cover.meaning}`] : []
}

function addProtection(instance: Command): void {
  verb(
    instance,
    'protection <name>',
    'show what protects an instance against torn pages',
    'Queries the instance for what a page torn by a crash would be repaired from: full-page images, its flashback log, a standby, or nothing.',
  ).action(async (name: string, { json }: Verb) => {
    const client = openConsole()
    const { instanceId } = await findInstance(client, name)
    const { protection } = await client.trpc.protection.read.query({ instanceId })
    printResult(json, protection, () =>
      protection === null
        ? 'Unknown: its database postgres lacks the extension page_repair.'
        : [
            `state         ${protectionWords(protection).title}`,
            `since         ${moment(protection.since)}`,
            `why           ${protection.why || '–'}`,
            ...coverOf(protection),
            `setting       full_page_writes is ${protection.fullPageWrites ? 'on' : 'off'}, the guard is ${protection.guard ? 'on' : 'off'}`,
            `images        ${protection.imagesInForce === null ? '– (a standby writes no WAL)' : protection.imagesInForce ? 'written' : 'left out'}`,
            protection.sources.length === 0
              ? 'sources none; a standby becomes one automatically'
              : `\n${table(
                  ['source', 'address', 'healthy', 'behind', 'apart', 'why'],
                  protection.sources.map((s) => [
                    s.member,
                    s.source,
                    s.healthy ? 'yes' : 'no',
                    s.lagBytes === null ? null : exactBytes(s.lagBytes),
                    apartTitle(s.apart),
                    s.why,
                  ]),
                )}`,
          ].join('\n'),
    )
  })
  verb(
    instance,
    'recoveries <name>',
    'list starts after crashes: duration, torn and repaired pages',
    'Lists the starts after a crash, newest first: how long each took until clients could connect, and what page repair found, in pages of 8 kB, as the engine counted them.',
  ).action(async (name: string, { json }: Verb) => {
    const client = openConsole()
    const { instanceId } = await findInstance(client, name)
    const { recoveries } = await client.trpc.protection.history.query({ instanceId })
    printResult(json, recoveries, () =>
      recoveries.length === 0
        ? 'No recovery is known.'
        : table(
            [
              'began',
              'start',
              'page repair',
              'kind',
              'policy',
              'checked',
              'torn',
              'repaired',
              'cleared',
              'from',
            ],
            recoveries.map((r) => [
              moment(r.start?.beganAt ?? r.startedAt),
              r.start ? duration(r.start.readyAt - r.start.beganAt) : null,
              r.endedAt === null ? null : duration(r.endedAt - r.startedAt),
              r.kind,
              r.policy,
              ...(r.policy === NO_PAGE_REPAIR
                ? [null, null, null, null]
                : [r.checked, r.torn, r.repaired, r.cleared ?? 0]),
              r.sources.map((s) => `${s.member ?? s.source} (${s.pages})`).join(', '),
            ]),
          ),
    )
  })
}

/** That it was adopted, whether it runs, and what of it was lost. */
function formatAdopted(name: string, { postmasterPid, lost }: Record<string, unknown>): string {
  const all = (lost ?? []) as { what: string; hint: string }[]
  return [
    `Instance "${name}" is adopted${postmasterPid === null ? '; it does not run' : ''}.`,
    ...all.map(({ what, hint }) => `Lost: ${what}. ${hint}`),
  ].join('\n')
}

function addAdopt(instance: Command): void {
  submittingVerb(
    instance,
    'adopt <name>',
    'register an instance that its host’s agent, or this console, has lost',
    'Registers an instance again with the agent of its host, which has lost its own state, and takes over its engine without a restart. Refused unless directory, user, system identifier and port are those of the instance. With --host, registers an instance here that the agent of that host reports and this console does not know; a standby is refused.',
  )
    .option('--host <name>', 'the host that reports it, if this console does not know it')
    .option('--as <name>', 'a new name, if its name is taken here')
    .option('--no-wait', 'do not wait for the operation to end')
    .action(async (name: string, options: Submitting & { host?: string; as?: string }) => {
      const as = options.as === undefined ? undefined : InstanceName.safeParse(options.as)
      if (as?.success === false)
        throw fault('usage.instance_name', `"${options.as}" cannot be the name of an instance`, {
          detail: `A name ${as.error.issues[0]?.message}.`,
        })
      if (as && options.host === undefined)
        throw fault('usage.instance_name', 'an instance that this console knows keeps its name', {
          hint: 'If this console does not know the instance, name its host with --host.',
        })
      const client = openConsole()
      const host = options.host === undefined ? null : (await findHost(client, options.host)).host
      const known = host ? null : await findInstance(client, name)
      const { operationId } = await submitOnce(options.idempotencyKey, (idempotencyKey) =>
        host
          ? client.trpc.instance.adoptReported.mutate({
              hostId: host.hostId,
              instance: name,
              ...(as ? { name: as.data } : {}),
              idempotencyKey,
            })
          : client.trpc.instance.adopt.mutate({
              instanceId: (known as InstanceDetail).instanceId,
              idempotencyKey,
            }),
      )
      const operation = options.wait ? await waitForOperation(client, operationId) : null
      const called = as?.data ?? known?.name ?? operation?.instanceName ?? name
      printResult(
        options.json,
        {
          operationId,
          name: called,
          state: operation?.state ?? 'queued',
          result: operation?.result ?? null,
        },
        () =>
          operation === null
            ? `Operation ${operationId} was started.`
            : formatAdopted(called, operation.result ?? {}),
      )
    })
}

function addDeletionProtection(instance: Command): void {
  verb(
    instance,
    'deletion-protection <name> [on|off]',
    'keep an instance from being deleted, or show whether it is',
    'Turns deletion protection on or off; without either word it shows it. While it is on, the primary of the instance’s cluster is not deleted and its host is not removed; standbys can be.',
  ).action(async (name: string, word: string | undefined, { json }: Verb) => {
    if (word !== undefined && word !== 'on' && word !== 'off')
      throw fault('usage.deletion_protection', `"${word}" is neither "on" nor "off"`)
    const client = openConsole()
    const { cluster } = await findInstance(client, name)
    const { on } =
      word === undefined
        ? { on: cluster.deletionProtected }
        : await client.trpc.cluster.deletionProtection.mutate({
            clusterId: cluster.clusterId,
            on: word === 'on',
          })
    printResult(
      json,
      { cluster: cluster.name, deletionProtection: on },
      () => `Deletion protection of ${protectedThing(name, cluster)} is ${on ? 'on' : 'off'}.`,
    )
  })
}

const protectedThing = (name: string, { members, name: cluster }: InstanceDetail['cluster']) =>
  members > 1 ? `cluster "${cluster}"` : `instance "${name}"`

export function addInstance(program: Command): void {
  const instance = program
    .command('instance')
    .summary('create, list, start, stop and delete instances')
    .description('Instances: engine servers with their data directories. A name or an id names one.')
  addCreate(instance)
  addLook(instance)
  addProtection(instance)
  addConnections(instance)
  addLimit(instance)
  addDeletionProtection(instance)
  addAdopt(instance)
  addProfile(instance)
  addOrders(instance)
  addKeptAside(instance)
}
