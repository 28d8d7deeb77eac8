import { type OperationId, type OperationKind, operationKindsThat, operationRecord } from '@floe/domain'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { z } from 'zod'
import { submitOnce } from '../console/submit-once'
import { waitForOperation } from '../console/wait-for-operation'
import { printResult } from '../output'
import { findInstance, openConsole } from './find-instance'
import { type Submitting, submittingVerb } from './verb'

/** `keepFiles` → `keep-files` */
const hyphened = (camel: string) => camel.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

/** What the person types as the instance's name once more is `--confirm`; any other part of an input keeps its name. */
const optionName = (field: string) => (field === 'confirmName' ? 'confirm' : hyphened(field))

const attributeOf = (option: string) =>
  option.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())

/** The schema below what says that a part may be left out, and what it is then. */
function unwrapped(schema: unknown): { inner: unknown; optional: boolean; standard: unknown } {
  let inner = schema
  let optional = false
  let standard: unknown
  while (inner instanceof z.ZodDefault || inner instanceof z.ZodOptional || inner instanceof z.ZodNullable) {
    optional = true
    if (inner instanceof z.ZodDefault) standard = inner.def.defaultValue
    inner = inner.unwrap()
  }
  return { inner, optional, standard }
}

/** The option of a part of an operation's input, by its schema and the description in its `meta`. */
export function optionOf(field: string, schema: z.ZodType): Option {
  const { inner, optional, standard } = unwrapped(schema)
  const name = `--${optionName(field)}`
  const description = schema.meta()?.description ?? field
  if (inner instanceof z.ZodBoolean) return new Option(name, description).default(undefined)
  const value = `<${field === 'confirmName' ? 'name' : optionName(field)}>`
  const option = new Option(`${name} ${value}`, description)
  if (inner instanceof z.ZodEnum) option.choices(inner.options.map(String))
  else
    option.argParser((text: string) => {
      const given = inner instanceof z.ZodNumber ? Number(text) : text
      const parsed = (inner as z.ZodType).safeParse(given)
      if (!parsed.success) throw new InvalidArgumentError(`It ${parsed.error.issues[0]?.message}.`)
      return given
    })
  if (standard !== undefined && standard !== null) option.default(standard)
  return optional ? option : option.makeOptionMandatory()
}

/** The parts of an input that a person gives as options. */
function askedFields(kind: OperationKind): [string, z.ZodType][] {
  const { input, order } = operationRecord(kind)
  return Object.entries(input.shape as Record<string, z.ZodType>).filter(
    ([field]) => field !== 'instanceId' && !order?.notAsked?.includes(field),
  )
}

type Ordering = { mutate(input: Record<string, unknown>): Promise<{ operationId: OperationId }> }

/**
 * Adds the verbs of a noun that only order an operation, one for each kind whose record says so (`order`): the instance is
 * named, what else the kind is asked with are options, and the console's procedure of the same noun and verb is called.
 */
export function addOrders(group: Command): void {
  const noun = group.name()
  for (const kind of operationKindsThat(({ order }) => order?.noun === noun)) {
    const { order } = operationRecord(kind)
    if (!order) continue
    const { verb, summary, about, done } = order
    const command = submittingVerb(group, `${hyphened(verb)} <name>`, summary, about)
    const fields = askedFields(kind)
    for (const [field, schema] of fields) command.addOption(optionOf(field, schema))
    command
      .option('--no-wait', 'do not wait until it is done')
      .action(async (named: string, options: Submitting & Record<string, unknown>) => {
        const client = openConsole()
        const { instanceId, name } = await findInstance(client, named)
        const asked = fields.flatMap(([field]) => {
          const value = options[attributeOf(optionName(field))]
          return value === undefined ? [] : [[field, value] as const]
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
