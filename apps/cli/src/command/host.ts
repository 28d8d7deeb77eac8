import {
  agentPackageOf,
  ENROLMENT_MINUTES,
  ENROLMENT_MINUTES_MAX,
  fault,
  formatUse,
  HOST_CHECK_OLD_MS,
  type HostCheckSeverity,
  HostName,
  hostCheckSummary,
  hostResourceRecord,
  limitSumWords,
  limitWords,
  noLimits,
  PowerSupply,
  sortedHostCheck,
} from '@floe/domain'
import type { RouterOutputs } from '@floe/web/api'
import type { Command } from 'commander'
import type { ConsoleClient } from '../console/client'
import { duration, moment, printResult, table } from '../output'
import { findHost, type HostDetail } from './find-host'
import { openConsole } from './find-instance'
import { addHostUpgrade } from './host-upgrade'
import { verb, wholeNumber } from './verb'

type Host = RouterOutputs['host']['list']['hosts'][number]
type Detail = HostDetail
type Verb = { json?: boolean }

const gigabytes = (bytes: number | undefined) =>
  bytes === undefined ? null : `${(bytes / 1024 ** 3).toFixed(1)} GB`
const seen = (host: Host) => (host.ageMs === null ? 'never' : `${duration(host.ageMs)} ago`)
const stateOf = (host: Host) => (host.revokedAt === null ? host.state : 'revoked')

/** What it runs, and what it would start with where that is another one. */
const buildOf = (engine: Detail['instanceList'][number]['engine']) =>
  engine === null || engine.running === null || engine.running === engine.build
    ? engine?.build
    : `${engine.running} (starts with ${engine.build})`

const packagesOf = (packages: NonNullable<Detail['host']['facts']>['packages']) =>
  (packages?.installed ?? []).map(
    ({ name, version, status }, i) =>
      `${i === 0 ? 'packages' : ''}`.padEnd(14) +
      `${name} ${version}${status === 'installed' ? '' : ` (${status})`}`,
  )

function formatHost({ host, check, instanceList }: Detail): string {
  const { facts } = host
  const lines = [
    `name          ${host.name}${host.own ? ' (the console’s own machine)' : ''}`,
    `state         ${stateOf(host)}`,
    `seen          ${seen(host)}`,
    ...(host.revokedAt === null ? [] : [`revoked       ${moment(host.revokedAt)} by ${host.revokedBy}`]),
    ...(host.fault && host.state !== 'online' ? [`because       ${host.fault.message}`] : []),
    `agent         ${host.agentVersion ?? '–'} at ${host.agentUrl}`,
    ...packagesOf(facts?.packages),
    `engine        ${facts?.engineBuild === undefined ? '–' : `${facts.engineBuild}, which new instances get`}`,
    `checked       ${check.last === null ? 'never' : `${moment(check.last.at)}: ${hostCheckSummary(check.last.check.lines)}`}`,
    `power supply  ${host.powerSupply ?? 'unknown'}`,
    `certificate   ${host.certificateEndsAt === null ? '–' : `until ${moment(host.certificateEndsAt)}, renewed automatically`}`,
    `system        ${facts ? `${facts.operatingSystem}, kernel ${facts.kernel}, ${facts.architecture}` : '–'}`,
    `cpus          ${facts?.cpus ?? '–'}, load ${facts?.loadAverage1.toFixed(2) ?? '–'}`,
    `memory        ${gigabytes(facts?.memoryAvailableBytes) ?? '–'} of ${gigabytes(facts?.memoryBytes) ?? '–'} available`,
    `ports         ${facts ? `${facts.instancePorts.from}-${facts.instancePorts.to}, ${facts.instancePorts.used} used` : '–'}`,
    `id            ${host.hostId}`,
  ]
  const disks = table(
    ['mount', 'device', 'file system', 'options', 'free', 'size', 'nvme'],
    (facts?.disks ?? []).map((d) => [
      d.mount,
      d.device,
      d.fileSystem,
      d.options,
      gigabytes(d.freeBytes),
      gigabytes(d.sizeBytes),
      d.nvme ? 'yes' : 'no',
    ]),
  )
  const instances = table(
    ['instance', 'state', 'role', 'port', 'engine', 'build'],
    instanceList.map((i) => [
      i.name,
      i.state === i.lastState ? i.state : `${i.state} (was ${i.lastState})`,
      i.role,
      i.port,
      i.engineVersion,
      buildOf(i.engine),
    ]),
  )
  const older = instanceList.filter((i) => i.engine?.current === false).length
  const hint =
    older === 0
      ? []
      : [`${older} of them on another build than the installed one: ./floe host upgrade ${host.name} --plan`]
  return [lines.join('\n'), disks, instanceList.length === 0 ? 'no instances' : instances, ...hint].join(
    '\n\n',
  )
}

/** How a severity is called in a terminal; what gives up durability is not to be overlooked there. */
const severityWords: Record<HostCheckSeverity, string> = {
  fault: 'FAULT',
  advice: 'advice',
  unknown: 'unknown',
  ok: 'ok',
}

function formatCheck({ host, check }: Pick<Detail, 'host' | 'check'>, all: boolean): string {
  const { last, failed } = check
  const why = failed
    ? [
        `The check of ${moment(failed.at)} returned no result: ${failed.fault.message}${failed.fault.detail ? ` (${failed.fault.detail})` : ''}`,
      ]
    : []
  if (!last) return [...why, `Host "${host.name}" was never checked.`].join('\n')
  const ageMs = Date.now() - last.at
  const lines = sortedHostCheck(last.check.lines)
  const shown = all ? lines : lines.filter((line) => line.severity !== 'ok')
  return [
    ...why,
    `host ${host.name}, checked ${moment(last.at)} by ${last.actorName}${ageMs > HOST_CHECK_OLD_MS ? ` (${duration(ageMs)} ago: it may be otherwise now)` : ''}`,
    ...(last.check.container
      ? ['It is a container: settings of the kernel are those of the machine around it.']
      : []),
    ...shown.flatMap((line) => [
      '',
      `${severityWords[line.severity].padEnd(8)}${line.name}: ${line.actual ?? 'unknown'}${line.severity === 'ok' ? '' : `, wanted: ${line.wanted}`}`,
      ...(line.severity === 'ok' ? [] : [`        ${line.why}`]),
      ...(line.command === null ? [] : [`        As root: ${line.command}`]),
    ]),
    '',
    hostCheckSummary(last.check.lines),
  ].join('\n')
}

function addCheck(host: Command): void {
  verb(
    host,
    'check [name]',
    'check a host’s machine against the recommendations',
    'Has the agent of a host check its machine: kernel settings, limits, file systems and disks. Nothing is changed; each difference is printed with the command that fixes it. Without a name: the console’s own machine. The exit status is 1 where a fault was found.',
  )
    .option('--last', 'print what the last check reported, without a new one')
    .option('--all', 'print also what is as wanted')
    .action(
      async (name: string | undefined, { json, last, all }: Verb & { last?: boolean; all?: boolean }) => {
        const client = openConsole()
        const detail = name === undefined ? await ownHost(client) : await findHost(client, name)
        const { hostId } = detail.host
        const check = last ? detail.check : await client.trpc.host.check.mutate({ hostId })
        printResult(json, check, () => formatCheck({ ...detail, check }, all ?? false))
        if (check.last?.check.lines.some((line) => line.severity === 'fault')) process.exitCode = 1
      },
    )
}

function formatMap(
  host: Host,
  { resources, instances, pressures, sums, diskUse }: RouterOutputs['host']['map'],
): string {
  if (resources.length === 0)
    return `Nothing is known of host "${host.name}" yet: its agent has not answered.`
  const row = (name: string, state: string, values: (number | null)[], limits = noLimits) => [
    name,
    state,
    ...resources.map(({ resource }, i) => {
      const limit = limitWords(resource, limits)
      return `${formatUse(resource, values[i] ?? null)}${limit === null ? '' : ` (${limit})`}`
    }),
  ]
  return [
    ...(host.state === 'online' ? [] : [`The machine as last seen ${seen(host)}.`, '']),
    table(
      ['instance', 'state', ...resources.map((r) => hostResourceRecord(r.resource).title.toLowerCase())],
      [
        ...instances.map((instance, i) =>
          row(
            instance.name,
            instance.state,
            resources.map((r) => r.used[i] ?? null),
            instance.limits,
          ),
        ),
        row(
          'everything else',
          ' ',
          resources.map((r) => r.others),
        ),
        row(
          'left',
          ' ',
          resources.map((r) => r.left),
        ),
        row(
          'all there is',
          ' ',
          resources.map((r) => r.size),
        ),
      ],
    ),
    ...(sums.length + diskUse.length > 0 ? [''] : []),
    ...sums.map(
      (sum) => `${sum.resource} limits of all: ${limitSumWords(sum)}${sum.over ? ' (over-committed)' : ''}`,
    ),
    ...diskUse,
    ...pressures.flatMap(({ title, detail, hint }) => [
      '',
      `${title}. ${detail}${hint === null ? '' : ` ${hint}`}`,
    ]),
  ].join('\n')
}

function addMap(host: Command): void {
  verb(
    host,
    'map [name]',
    'show who uses how much of a host',
    'Shows how much CPU, memory, disk space, reads and writes each instance of a host uses now, what everything else uses, what is left, and what hurts whom. Without a name: the console’s own machine.',
  ).action(async (name: string | undefined, { json }: Verb) => {
    const client = openConsole()
    const detail = name === undefined ? await ownHost(client) : await findHost(client, name)
    const map = await client.trpc.host.map.query({ hostId: detail.host.hostId })
    printResult(json, map, () => formatMap(detail.host, map))
  })
}

async function ownHost(client: ConsoleClient): Promise<Detail> {
  const { hosts } = await client.trpc.host.list.query()
  const own = hosts.find((h) => h.own)
  if (!own) throw fault('host.not_found', 'the console does not know its own machine yet')
  return findHost(client, own.hostId)
}

function addLook(host: Command): void {
  verb(host, 'list', 'list the hosts').action(async ({ json }: Verb) => {
    const { hosts, enrolments } = await openConsole().trpc.host.list.query()
    printResult(json, hosts, () =>
      [
        table(
          ['name', 'state', 'instances', 'cpus', 'memory', 'system', 'agent', 'seen'],
          hosts.map((h) => [
            h.name,
            stateOf(h),
            h.instances,
            h.facts?.cpus,
            gigabytes(h.facts?.memoryBytes),
            h.facts?.operatingSystem,
            agentPackageOf(h.facts) ?? h.agentVersion,
            seen(h),
          ]),
        ),
        ...enrolments.map(
          (e) =>
            `${e.name}: ${e.state === 'waiting' ? `waits for its agent until ${moment(e.expiresAt)}` : `enrolment ${e.state}`}${e.fault ? ` (${e.fault.message})` : ''}`,
        ),
      ].join('\n'),
    )
  })
  verb(
    host,
    'show <name>',
    'show a host',
    'Shows a host with its disks and instances, as last observed.',
  ).action(async (name: string, { json }: Verb) => {
    const detail = await findHost(openConsole(), name)
    printResult(json, detail, () => formatHost(detail))
  })
}

function addChanges(host: Command): void {
  verb(
    host,
    'add <name>',
    'get a one-time token for a new host',
    'Creates a one-time token, valid for 15 minutes by default, and prints the command to run in a checkout of Floe on the host.',
  )
    .option(
      '--again',
      'enrol an existing host again that was revoked, or away for too long; its instances stay',
    )
    .option(
      '--minutes <minutes>',
      'how long the token is valid, up to a day: for a machine that has to be made first',
      wholeNumber(1, ENROLMENT_MINUTES_MAX),
      ENROLMENT_MINUTES,
    )
    .action(async (name: string, { json, again, minutes }: Verb & { again?: boolean; minutes: number }) => {
      const parsed = HostName.safeParse(name)
      if (!parsed.success)
        throw fault('usage.host_name', `"${name}" cannot be the name of a host`, {
          detail: `A name ${parsed.error.issues[0]?.message}.`,
        })
      const added = await openConsole().trpc.host.add.mutate({
        name: parsed.data,
        again: again ?? false,
        minutes,
      })
      printResult(json, added, () =>
        [
          `Run this on the host, in a checkout of Floe, before ${moment(added.expiresAt)} (the token is shown only now):`,
          '',
          `  ${added.command}`,
          ...(added.onlyLocal
            ? [
                '',
                'Only this machine can reach the console’s address. For a host on another machine, run "./floe up --listen ADDRESS" first.',
              ]
            : []),
        ].join('\n'),
      )
    })
  verb(host, 'withdraw <name>', 'withdraw a token', 'Withdraws an unused one-time token of a host.').action(
    async (name: string, { json }: Verb) => {
      const { trpc } = openConsole()
      const { enrolments } = await trpc.host.list.query()
      const waiting = enrolments.find((e) => e.name === name && e.state === 'waiting')
      if (!waiting)
        throw fault('enrolment.not_found', `host "${name}" has no unused token`, {
          hint: 'See "./floe host list".',
        })
      const withdrawn = await trpc.host.withdraw.mutate({ enrolmentId: waiting.enrolmentId })
      printResult(json, withdrawn, () => `The token for host "${name}" was withdrawn.`)
    },
  )
  verb(
    host,
    'power-supply <name> [supply]',
    'name the power supply of a host',
    'Names what the host gets its power from, such as a circuit or a site. Hosts with the same name are taken to fail together: the status of page repair warns when a source shares the power supply of its instance.',
  )
    .option('--unknown', 'it is not known')
    .action(
      async (name: string, supply: string | undefined, { json, unknown }: Verb & { unknown?: boolean }) => {
        if ((supply === undefined) === !unknown)
          throw fault('usage.power_supply', 'a power supply or --unknown must be given')
        const parsed = PowerSupply.nullable().safeParse(supply ?? null)
        if (!parsed.success)
          throw fault('usage.power_supply', `"${supply}" cannot be the name of a power supply`, {
            detail: `A name ${parsed.error.issues[0]?.message}.`,
          })
        const client = openConsole()
        const { host: found } = await findHost(client, name)
        const set = await client.trpc.host.powerSupply.mutate({
          hostId: found.hostId,
          powerSupply: parsed.data,
        })
        printResult(
          json,
          set,
          () => `The power supply of host "${set.name}" is ${set.powerSupply ?? 'unknown'}.`,
        )
      },
    )
  verb(
    host,
    'revoke <name>',
    'revoke a host’s certificates',
    'Revokes a host: its certificates are no longer accepted and operations on it fail. Its instances keep running, unobserved.',
  )
    .requiredOption('--confirm <name>', 'the name of the host, once more')
    .action(async (name: string, { json, confirm }: Verb & { confirm: string }) => {
      const client = openConsole()
      const { host: found } = await findHost(client, name)
      const revoked = await client.trpc.host.revoke.mutate({ hostId: found.hostId, confirmName: confirm })
      printResult(json, revoked, () => `Host "${revoked.name}" is revoked.`)
    })
  verb(
    host,
    'remove <name>',
    'remove a revoked host',
    'Removes a revoked host and its instances from the console. Nothing is deleted on the machine itself.',
  )
    .requiredOption('--confirm <name>', 'the name of the host, once more')
    .action(async (name: string, { json, confirm }: Verb & { confirm: string }) => {
      const client = openConsole()
      const { host: found } = await findHost(client, name)
      const removed = await client.trpc.host.remove.mutate({ hostId: found.hostId, confirmName: confirm })
      printResult(
        json,
        removed,
        () => `Host "${removed.name}" is removed, and ${removed.instances} instances with it.`,
      )
    })
}

export function addHost(program: Command): void {
  const host = program
    .command('host')
    .summary('add, list, show, upgrade, revoke and remove hosts')
    .description('Hosts: machines with an agent. A name or an id names one.')
  addLook(host)
  addCheck(host)
  addMap(host)
  addHostUpgrade(host)
  addChanges(host)
}
