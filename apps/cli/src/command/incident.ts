import type { Command } from 'commander'
import { duration, moment, printResult, table } from '../output'
import { findInstance, openConsole } from './find-instance'
import { verb, wholeNumber } from './verb'

type Verb = { json?: boolean }

export function addIncident(program: Command): void {
  const incident = program
    .command('incident')
    .summary('look at what needs a person')
    .description('Incidents: opened and closed by the controller, by what it observes.')

  verb(incident, 'list', 'list the open incidents, newest first')
    .option('--instance <name>', 'only those of an instance')
    .option('--closed', 'also those that are over')
    .option('--limit <n>', 'at most this many', wholeNumber(1, 200), 100)
    .action(
      async ({
        json,
        instance,
        closed,
        limit,
      }: Verb & { instance?: string; closed?: boolean; limit: number }) => {
        const client = openConsole()
        const instanceId =
          instance === undefined ? undefined : (await findInstance(client, instance)).instanceId
        const { incidents } = await client.trpc.incident.list.query({
          instanceId,
          closed: closed ?? false,
          limit,
        })
        printResult(json, incidents, () =>
          incidents.length === 0
            ? 'Nothing needs a person now.'
            : table(
                ['opened', 'severity', 'lasted', 'what', 'detail'],
                incidents.map((i) => [
                  moment(i.openedAt),
                  i.severity,
                  `${duration((i.closedAt ?? Date.now()) - i.openedAt)}${i.closedAt === null ? ', open' : ''}`,
                  i.title,
                  i.detail ?? ' ',
                ]),
              ),
        )
      },
    )
}
