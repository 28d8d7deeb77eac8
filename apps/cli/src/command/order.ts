import {
  commandKindsThat,
  type OperationId,
  type OrderField,
  operationRecords,
  orderFields,
} from '@floe/domain'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { submitOnce } from '../console/submit-once'
import { waitForOperation } from '../console/wait-for-operation'
import { printResult } from '../output'
import { findInstance, openConsole } from './find-instance'
import { type Submitting, submittingVerb } from './verb'

/** `keepFiles` → `keep-files` */
const hyphened = (camel: string) => camel.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

/** The option of a part of an operation's input. What the person types as the instance's name once more is `--confirm`. */
export function optionOf({
  name,
  description,
  form,
  choices,
  optional,
  standard,
  schema,
}: OrderField): Option {
  const confirms = name === 'confirmName'
  const flag = confirms ? '--confirm' : `--${hyphened(name)}`
  // left out and switched off are the same to the console
  if (form === 'switch') return new Option(flag, description)
  const option = new Option(`${flag} <${confirms ? 'name' : hyphened(name)}>`, description)
  if (form === 'choice') option.choices(choices)
  else
    option.argParser((text: string) => {
      const given = schema.type === 'number' ? Number(text) : text
      const parsed = schema.safeParse(given)
      if (!parsed.success) throw new InvalidArgumentError(`It ${parsed.error.issues[0]?.message}.`)
      return given
    })
  if (standard !== undefined) option.default(standard)
  return optional ? option : option.makeOptionMandatory()
}

type Ordering = { mutate(input: Record<string, unknown>): Promise<{ operationId: OperationId }> }

/**
 * Adds the verbs of a noun that only order an operation, one for each kind whose record says so (`order.command`): the instance is
 * named, what else the kind is asked with are options, and the console's procedure of the same noun and verb is called.
 */
export function addOrders(group: Command): void {
  const noun = group.name()
  for (const kind of commandKindsThat((_, order) => order.noun === noun)) {
    const {
      verb,
      command: { summary, about, done },
    } = operationRecords[kind].order
    const command = submittingVerb(group, `${hyphened(verb)} <name>`, summary, about)
    const fields = orderFields(kind).map(({ name, ...field }) => ({
      name,
      option: optionOf({ name, ...field }),
    }))
    for (const { option } of fields) command.addOption(option)
    command
      .option('--no-wait', 'do not wait for the operation to end')
      .action(async (named: string, options: Submitting & Record<string, unknown>) => {
        const client = openConsole()
        const { instanceId, name } = await findInstance(client, named)
        const asked = fields.flatMap((field) => {
          const value = options[field.option.attributeName()]
          return value === undefined ? [] : [[field.name, value] as const]
        })
        const procedure = (client.trpc as unknown as Record<string, Record<string, Ordering>>)[noun]?.[verb]
        const { operationId } = await submitOnce(options.idempotencyKey, (idempotencyKey) =>
          (procedure as Ordering).mutate({ ...Object.fromEntries(asked), instanceId, idempotencyKey }),
        )
        const operation = options.wait ? await waitForOperation(client, operationId) : null
        const result = operation?.result ?? null
        printResult(
          options.json,
          { operationId, instanceId, name, state: operation?.state ?? 'queued', result },
          () =>
            operation === null
              ? `Operation ${operationId} was started.`
              : `Instance "${name}" ${typeof done === 'string' ? done : done(result ?? {})}.`,
        )
      })
  }
}
