import type { Command } from 'commander'
import { duration, printResult, table } from '../output'
import { openConsole } from './find-instance'
import { verb } from './verb'

const gigabytes = (bytes: number | undefined) =>
  bytes === undefined ? null : `${(bytes / 1024 ** 3).toFixed(1)} GB`

export function addHost(program: Command): void {
  const host = program.command('host').summary('look at hosts').description('Hosts: machines with an agent.')
  verb(host, 'list', 'list the hosts').action(async ({ json }: { json?: boolean }) => {
    const { hosts } = await openConsole().trpc.host.list.query()
    printResult(json, hosts, () =>
      table(
        ['name', 'state', 'instances', 'cpus', 'memory', 'system', 'agent', 'seen'],
        hosts.map((h) => [
          h.name,
          h.state,
          h.instances,
          h.facts?.cpus,
          gigabytes(h.facts?.memoryBytes),
          h.facts?.operatingSystem,
          h.agentVersion,
          h.ageMs === null ? 'never' : `${duration(h.ageMs)} ago`,
        ]),
      ),
    )
  })
}
