import { fault, IncidentId, IncidentSeverity, IncidentState } from '@floe/domain'
import type { RouterOutputs } from '@floe/web/api'
import type { Command } from 'commander'
import { duration, moment, printResult, table } from '../output'
import { findInstance, openConsole } from './find-instance'
import { oneOf, verb, wholeNumber } from './verb'

type Verb = { json?: boolean }
type Incident = RouterOutputs['incident']['show']['incident']

function incidentId(text: string): IncidentId {
  const parsed = IncidentId.safeParse(text)
  if (parsed.success) return parsed.data
  throw fault('usage.incident_id', `"${text}" is not the id of an incident`, {
    hint: 'Run "./floe incident list" for the ids.',
  })
}

function formatIncident(i: Incident, now: number): string {
  const lasted = duration((i.closedAt ?? now) - i.openedAt)
  return [
    `${i.severity.toUpperCase()}: ${i.title}`,
    ...(i.detail ? [`DETAIL: ${i.detail}`] : []),
    ...(i.hint ? [`HINT: ${i.hint}`] : []),
    '',
    `opened        ${moment(i.openedAt)}`,
    i.closedAt === null
      ? `state         open for ${lasted}`
      : `resolved      ${moment(i.closedAt)} after ${lasted}${i.closedBecause ? `: ${i.closedBecause}` : ''}`,
    `acknowledged  ${i.acknowledgedAt === null ? 'by nobody' : `${moment(i.acknowledgedAt)} by ${i.acknowledgedByName}`}`,
    ...(i.operationTitle ? [`operation     ${i.operationTitle} (${i.operationId})`] : []),
    ...(i.instanceName ? [`instance      ${i.instanceName}`] : []),
    ...(i.hostName ? [`host          ${i.hostName}`] : []),
    `id            ${i.incidentId}`,
  ].join('\n')
}

export function addIncident(program: Command): void {
  const incident = program
    .command('incident')
    .summary('list and acknowledge incidents')
    .description(
      'Incidents: what needs a person. An incident opens automatically, and resolves when its cause has ended.',
    )

  verb(incident, 'list', 'list incidents, open ones first, each newest first')
    .option(
      '--state <state>',
      'open, closed (those that are resolved) or all',
      oneOf(...IncidentState.options, 'all'),
      'open' as const,
    )
    .option(
      '--severity <severity>',
      'only critical ones, or only warnings',
      oneOf(...IncidentSeverity.options),
    )
    .option('--instance <name>', 'only those of an instance')
    .option('--limit <n>', 'at most this many', wholeNumber(1, 200), 50)
    .action(
      async ({
        json,
        instance,
        ...wanted
      }: Verb & {
        state: IncidentState | 'all'
        severity?: IncidentSeverity
        instance?: string
        limit: number
      }) => {
        const client = openConsole()
        const instanceId =
          instance === undefined ? undefined : (await findInstance(client, instance)).instanceId
        const { incidents, now } = await client.trpc.incident.list.query({ ...wanted, instanceId })
        printResult(json, incidents, () =>
          incidents.length === 0
            ? wanted.state === 'open'
              ? 'Nothing needs a person now.'
              : 'There are no such incidents.'
            : table(
                ['opened', 'severity', 'state', 'lasts', 'acknowledged by', 'what', 'id'],
                incidents.map((i) => [
                  moment(i.openedAt),
                  i.severity,
                  i.closedAt === null ? 'open' : 'resolved',
                  duration((i.closedAt ?? now) - i.openedAt),
                  i.acknowledgedByName,
                  i.title,
                  i.incidentId,
                ]),
              ),
        )
      },
    )

  verb(incident, 'show <id>', 'show an incident').action(async (id: string, { json }: Verb) => {
    const shown = await openConsole().trpc.incident.show.query({ incidentId: incidentId(id) })
    printResult(json, shown.incident, () => formatIncident(shown.incident, shown.now))
  })

  verb(
    incident,
    'acknowledge <id>',
    'acknowledge an open incident',
    'Acknowledges an open incident, so that others see that somebody handles it. It stays open as long as its cause lasts.',
  ).action(async (id: string, { json }: Verb) => {
    const result = await openConsole().trpc.incident.acknowledge.mutate({ incidentId: incidentId(id) })
    const { acknowledgedByName, acknowledgedAt } = result.incident
    printResult(json, result, () =>
      result.first
        ? 'It is acknowledged.'
        : `${acknowledgedByName} has already acknowledged it, at ${moment(acknowledgedAt)}.`,
    )
  })
}
