import {
  type Fault,
  FaultError,
  fault,
  type HostId,
  type HostUpgrade,
  type HostUpgradePlan,
  InstanceName,
  type PackageChange,
} from '@floe/domain'
import { pause } from '@floe/host/wait'
import { type Command, InvalidArgumentError } from 'commander'
import type { ConsoleClient } from '../console/client'
import { waitForOperation } from '../console/wait-for-operation'
import { printResult, tell } from '../output'
import { findHost } from './find-host'
import { openConsole } from './find-instance'
import { readPackageFiles, storePackages } from './host-packages'
import { verb } from './verb'

const LOOK_MS = 500

type Options = {
  json?: boolean
  plan?: boolean
  confirm?: string
  switchBack?: boolean
  cancel?: boolean
  except?: InstanceName[]
  packages?: string[]
  downgrade?: boolean
  wait: boolean
}

/** The plan as a person reads it. */
export function formatUpgradePlan(
  name: string,
  { build, blocker, clusters, current, packages }: HostUpgradePlan,
  last: HostUpgrade | null,
  /** What was said besides the name, to be said again. */
  said = '',
): string {
  if (blocker)
    return [`Host "${name}" cannot be upgraded now: ${blocker.message}.`, blocker.detail, blocker.hint]
      .filter(Boolean)
      .join('\n')
  const left = clusters.flatMap((c) => c.left)
  const moved = clusters.filter(({ steps }) => steps.length > 0)
  const changes = (packages ?? []).filter(({ change }) => change !== 'none')
  let n = 0
  return [
    ...(packages
      ? [
          `Packages of host "${name}":`,
          ...packages.map((change) => `  ${packageChange(change)}`),
          ...(changes.length > 0 ? ['The agent is stopped and started by it; instances keep running.'] : []),
          '',
          `Installed then: engine build ${build}.`,
        ]
      : [`Installed on host "${name}": engine build ${build}.`]),
    ...(last && last.endedAt === null ? [`An upgrade that ${last.actorName} asked for is at work.`] : []),
    ...(current.length > 0 ? [`On it already: ${current.join(', ')}.`] : []),
    ...moved.flatMap(({ cluster, steps }) => [
      '',
      `Cluster "${cluster}":`,
      ...steps.map(({ text }) => `  ${++n}. ${text}`),
    ]),
    ...(left.length > 0 ? ['', 'Left as they are:', ...left.map((l) => `  "${l.member}": ${l.why}.`)] : []),
    '',
    moved.length === 0 && changes.length === 0
      ? 'There is nothing to do.'
      : `Nothing has been changed. To do this: ./floe host upgrade ${name}${said} --confirm ${name}`,
  ].join('\n')
}

function packageChange({ name, from, to, change }: PackageChange): string {
  if (change === 'none') return `${name} ${to} is installed.`
  if (change === 'install') return `${name} ${to} is installed beside what is there.`
  return `${name} goes ${change === 'downgrade' ? 'back ' : ''}from ${from} to ${to}.`
}

/** What came of an upgrade that has ended. */
export function formatUpgraded(name: string, { build, ordered, left, packages }: HostUpgrade): string {
  const clusters = ordered
    .filter(({ back, state }) => !back && state === 'succeeded')
    .map(({ cluster }) => `"${cluster}"`)
  return [
    ...(packages ?? []).map((p) => `Installed on host "${name}": ${p.name} ${p.version}.`),
    clusters.length === 0
      ? `No instance of host "${name}" was moved.`
      : `On engine build ${build} now, on host "${name}": ${clusters.length === 1 ? 'cluster' : 'clusters'} ${clusters.join(', ')}.`,
    ...(left ?? []).map(({ member, why }) => `Left as it is: "${member}": ${why}.`),
  ].join('\n')
}

/** Shows each operation that is ordered until the upgrade has ended; throws why it ended before its end. */
async function followUpgrade(client: ConsoleClient, hostId: HostId, upgradeId: string): Promise<HostUpgrade> {
  const shown = new Set<string>()
  let said = ''
  for (;;) {
    const { last } = await client.trpc.host.upgradePlan.query({ hostId })
    if (last?.upgradeId !== upgradeId)
      throw fault('host.upgrade_replaced', 'the upgrade has ended, and another one was asked for since')
    for (const { operationId, cluster, back } of last.ordered) {
      if (shown.has(operationId)) continue
      shown.add(operationId)
      tell(`cluster "${cluster}"${back ? ', back' : ''}: operation ${operationId}`)
      // how it ended stands in the upgrade as well
      await waitForOperation(client, operationId).catch((error) => {
        if (!(error instanceof FaultError)) throw error
      })
    }
    if (last.endedAt !== null) {
      if (last.fault) throw new FaultError(last.fault as Fault)
      return last
    }
    if (last.message !== null && last.message !== said) tell(last.message)
    said = last.message ?? ''
    await pause(LOOK_MS)
  }
}

function clusterName(text: string): InstanceName {
  const name = InstanceName.safeParse(text)
  if (!name.success) throw new InvalidArgumentError('It must be the name of a cluster.')
  return name.data
}

export function addHostUpgrade(host: Command): void {
  verb(
    host,
    'upgrade <name>',
    'bring packages to a host, and move its instances onto the installed engine',
    'Prints the plan of an upgrade: what packages are brought to it (--packages), and which instances run another build of the engine than the one installed on their host, in which order they are moved, and what clients notice. Nothing happens without --confirm. Of a cluster the standbys are restarted first, then a standby takes over, then the former primary is restarted as a standby; a primary without such a standby is restarted. A cluster that fails before an instance of it was stopped is left as it is. An instance that does not start on the installed engine is started on its former one, and the upgrade ends there.',
  )
    .option('--plan', 'print the plan and do nothing, also with --confirm')
    .option('--confirm <name>', 'the name of the host, once more: carries the plan out')
    .option('--switch-back', 'switch over again afterwards, so that primaries are on this host as before')
    .option(
      '--except <cluster>',
      'leave a cluster out, e.g. one that cannot be moved; can be repeated',
      (text: string, before: InstanceName[] = []) => [...before, clusterName(text)],
    )
    .option(
      '--packages <path>',
      'bring these packages of agent and engine first: a directory, or a file; can be repeated. Only an admin may',
      (text: string, before: string[] = []) => [...before, text],
    )
    .option('--downgrade', 'install the packages also where they are earlier than the installed ones')
    .option('--cancel', 'order nothing more for the upgrade at work; its current operation goes to its end')
    .option('--no-wait', 'do not wait for the upgrade to end')
    .action(async (name: string, options: Options) => {
      const client = openConsole()
      const { host: found } = await findHost(client, name)
      const { hostId } = found
      if (options.cancel) {
        const cancelled = await client.trpc.host.cancelUpgrade.mutate({ hostId })
        printResult(options.json, cancelled, () => `The upgrade of host "${found.name}" orders nothing more.`)
        return
      }
      const except = options.except ?? []
      const files = options.packages ? await readPackageFiles(options.packages) : null
      const brought = files && {
        packages: files.map(({ is }) => is),
        downgrade: options.downgrade ?? false,
      }
      const shown = await client.trpc.host.upgradePlan.query({ hostId, except, ...brought })
      if (options.plan || options.confirm === undefined) {
        const said = [
          ...(options.packages ?? []).map((path) => ` --packages ${path}`),
          options.downgrade ? ' --downgrade' : '',
        ].join('')
        printResult(options.json, shown, () => formatUpgradePlan(found.name, shown.plan, shown.last, said))
        return
      }
      if (shown.plan.blocker) throw new FaultError(shown.plan.blocker)
      const input = {
        hostId,
        build: shown.plan.build ?? '',
        confirmName: options.confirm,
        switchBack: options.switchBack ?? false,
        except,
      }
      if (files) await storePackages(client, files, tell)
      const asked = brought
        ? await client.trpc.host.upgradeWithPackages.mutate({ ...input, ...brought })
        : await client.trpc.host.upgrade.mutate(input)
      if (!options.wait) {
        printResult(
          options.json,
          asked,
          () => `The upgrade of host "${found.name}" has begun: ./floe host upgrade ${found.name} --plan`,
        )
        return
      }
      const upgraded = await followUpgrade(client, hostId, asked.upgradeId)
      printResult(options.json, upgraded, () => formatUpgraded(found.name, upgraded))
    })
}
