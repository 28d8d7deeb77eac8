import { fault, OperationId, OperationState, stepWorkWords } from '@floe/domain'
import type { Command } from 'commander'
import {
  followOperation,
  formatEvent,
  type OperationDetail,
  OperationEvents,
} from '../console/follow-operation'
import { submitOnce } from '../console/submit-once'
import { throwUnlessWell, waitForOperation } from '../console/wait-for-operation'
import { duration, moment, percent, printJsonLine, printResult, printWords, table } from '../output'
import { findInstance, openConsole } from './find-instance'
import { oneOf, type Submitting, submittingVerb, verb, wholeNumber } from './verb'

type Verb = { json?: boolean }

function operationId(text: string): OperationId {
  const parsed = OperationId.safeParse(text)
  if (parsed.success) return parsed.data
  throw fault('usage.operation_id', `"${text}" is not the id of an operation`, {
    hint: 'Run "./floe operation list" for the ids.',
  })
}

export function addOperation(program: Command): void {
  const operation = program
    .command('operation')
    .summary('show operations, cancel or retry one')
    .description('Operations: every requested change, with its steps and log.')

  verb(operation, 'list', 'list operations, newest first')
    .option('--instance <name>', 'only those of an instance')
    .option('--state <state>', 'only those in a state', oneOf(...OperationState.options))
    .option('--limit <n>', 'at most this many', wholeNumber(1, 200), 20)
    .action(
      async ({
        json,
        instance,
        state,
        limit,
      }: Verb & { instance?: string; state?: OperationState; limit: number }) => {
        const client = openConsole()
        const instanceId =
          instance === undefined ? undefined : (await findInstance(client, instance)).instanceId
        const { operations } = await client.trpc.operation.list.query({
          instanceId,
          states: state && [state],
          limit,
        })
        printResult(json, operations, () =>
          operations.length === 0
            ? 'There are no operations.'
            : table(
                ['created', 'operation', 'instance', 'state', 'done', 'took', 'by', 'id'],
                operations.map((o) => [
                  moment(o.createdAt),
                  o.title,
                  o.instanceName,
                  o.state,
                  percent(o.progress),
                  o.startedAt === null ? null : duration((o.endedAt ?? Date.now()) - o.startedAt),
                  o.actorName,
                  o.operationId,
                ]),
              ),
        )
      },
    )

  verb(operation, 'show <id>', 'show an operation with its steps and log').action(
    async (id: string, { json }: Verb) => {
      const { operation: o, log } = await openConsole().trpc.operation.show.query({
        operationId: operationId(id),
      })
      printResult(json, { ...o, log }, () =>
        [
          `${o.title}${o.instanceName ? ` "${o.instanceName}"` : ''}: ${o.state}, ${o.progress === null ? '' : `${percent(o.progress)} done, `}asked by ${o.actorName} at ${moment(o.createdAt)}`,
          ...(o.fault
            ? [
                `ERROR: ${o.fault.message}`,
                ...(o.fault.detail ? [`DETAIL: ${o.fault.detail}`] : []),
                ...(o.fault.hint ? [`HINT: ${o.fault.hint}`] : []),
              ]
            : []),
          '',
          table(
            ['step', 'state', 'attempt', 'took', ''],
            o.steps.map((s) => [
              s.title,
              s.state,
              s.attempt,
              s.startedAt === null ? null : duration((s.endedAt ?? Date.now()) - s.startedAt),
              [s.message, s.state === 'running' && s.work ? stepWorkWords(s.work) : null]
                .filter(Boolean)
                .join(': ') || ' ',
            ]),
          ),
          '',
          ...log.map((line) => `${moment(line.at)}  ${line.text}`),
        ].join('\n'),
      )
    },
  )

  verb(
    operation,
    'watch <id>',
    'follow an operation until it ends',
    'Prints steps, progress and log lines as they come, until the operation has ended; with --json one event a line. Exit status 0 when it succeeded, 1 when it failed or was cancelled. Ending this command does not affect the operation.',
  ).action(async (id: string, { json }: Verb) => {
    const events = new OperationEvents()
    let last: OperationDetail | undefined
    for await (const seen of followOperation(openConsole(), operationId(id))) {
      last = seen.operation
      for (const told of events.next(seen, Date.now())) {
        if (json) {
          printJsonLine(told)
          continue
        }
        const line = formatEvent(told, seen.operation)
        if (line !== null) printWords(line)
      }
    }
    if (!last) return
    // its event has the fault: a program finds one event a line and nothing else
    if (!json) throwUnlessWell(last)
    else if (last.state !== 'succeeded') process.exitCode = 1
  })

  verb(operation, 'cancel <id>', 'request the cancellation of an operation').action(
    async (id: string, { json }: Verb) => {
      const result = await openConsole().trpc.operation.cancel.mutate({ operationId: operationId(id) })
      printResult(json, result, () => `Requested the cancellation of operation ${result.operationId}.`)
    },
  )

  submittingVerb(
    operation,
    'retry <id>',
    'retry a failed or cancelled operation',
    'Retries a failed or cancelled operation, as a new one: steps that succeeded are not run again.',
  )
    .option('--no-wait', 'do not wait for the operation to end')
    .action(async (id: string, { json, wait, idempotencyKey: key }: Submitting) => {
      const client = openConsole()
      const { operationId: again } = await submitOnce(key, (idempotencyKey) =>
        client.trpc.operation.retry.mutate({ operationId: operationId(id), idempotencyKey }),
      )
      if (!wait) {
        printResult(json, { operationId: again }, () => `Operation ${again} was started.`)
        return
      }
      const ended = await waitForOperation(client, again)
      printResult(
        json,
        { operationId: again, state: ended.state },
        () => `Operation ${again} ${ended.state}.`,
      )
    })
}
