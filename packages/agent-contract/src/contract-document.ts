import { Sample } from '@floe/telemetry'
import { z } from 'zod'
import { createAgentRouter } from './router'
import { taskKinds, tasks } from './tasks'
import { contractVersion } from './version'

export type JsonSchema = { [key: string]: unknown }
export type ContractDocument = {
  version: string
  procedures: Record<string, { type: string; input: JsonSchema | null; output: JsonSchema }>
  taskResults: Record<string, JsonSchema>
}

type Definition = { type: string; inputs: z.ZodType[]; output?: z.ZodType }

const schemaOf = (schema: z.ZodType, io: 'input' | 'output') =>
  z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as JsonSchema

/** The whole contract as JSON Schemas of every procedure: what the golden file holds. */
export function contractDocument(): ContractDocument {
  const { procedures } = createAgentRouter({} as never)._def
  const described = Object.entries(procedures as unknown as Record<string, { _def: Definition }>).map(
    ([name, { _def }]) => {
      const input = _def.inputs[0] ? schemaOf(_def.inputs[0], 'input') : null
      // a subscription has no output schema of its own; what it carries is samples
      const output = schemaOf(_def.output ?? Sample, 'output')
      return [name, { type: _def.type, input, output }] as const
    },
  )
  return {
    version: contractVersion,
    procedures: Object.fromEntries(described.sort(([a], [b]) => (a < b ? -1 : 1))),
    taskResults: Object.fromEntries(taskKinds.map((kind) => [kind, schemaOf(tasks[kind].result, 'output')])),
  }
}

/** What would break a console or an agent of the other version; empty when `now` only adds to `before`. */
export function breakingChanges(before: ContractDocument, now: ContractDocument): string[] {
  const found: string[] = []
  for (const [name, old] of Object.entries(before.procedures)) {
    const current = now.procedures[name]
    if (!current) found.push(`${name}: removed`)
    else {
      if (current.type !== old.type) found.push(`${name}: ${old.type} became ${current.type}`)
      if (old.input && current.input) compare(`${name} input`, old.input, current.input, 'input', found)
      else if (old.input !== current.input && requires(current.input))
        found.push(`${name} input: now required`)
      compare(`${name} output`, old.output, current.output, 'output', found)
    }
  }
  for (const [kind, old] of Object.entries(before.taskResults)) {
    const current = now.taskResults[kind]
    if (!current) found.push(`result of ${kind}: removed`)
    else compare(`result of ${kind}`, old, current, 'output', found)
  }
  return found
}

const requires = (s: JsonSchema | null) => ((s?.required as string[] | undefined) ?? []).length > 0
const recordOf = (value: unknown) => (value ?? {}) as Record<string, JsonSchema>

/** Keywords that are walked into or say nothing about what is allowed. */
const structural = new Set([
  'properties',
  'required',
  'items',
  'anyOf',
  'oneOf',
  'enum',
  'default',
  '$schema',
])

function compare(
  at: string,
  old: JsonSchema,
  now: JsonSchema,
  io: 'input' | 'output',
  found: string[],
): void {
  for (const key of new Set([...Object.keys(old), ...Object.keys(now)]))
    if (!structural.has(key) && JSON.stringify(old[key]) !== JSON.stringify(now[key]))
      found.push(`${at}: ${key} changed from ${JSON.stringify(old[key])} to ${JSON.stringify(now[key])}`)
  const properties = recordOf(now.properties)
  for (const [name, schema] of Object.entries(recordOf(old.properties))) {
    const current = properties[name]
    if (current) compare(`${at}.${name}`, schema, current, io, found)
    else found.push(`${at}.${name}: removed`)
  }
  const oldRequired = (old.required as string[] | undefined) ?? []
  const nowRequired = (now.required as string[] | undefined) ?? []
  if (io === 'input')
    for (const name of nowRequired) {
      if (!oldRequired.includes(name)) found.push(`${at}.${name}: now required`)
    }
  else
    for (const name of oldRequired) {
      if (!nowRequired.includes(name)) found.push(`${at}.${name}: no longer always there`)
    }
  for (const word of (old.enum as unknown[] | undefined) ?? [])
    if (!((now.enum as unknown[] | undefined) ?? []).includes(word))
      found.push(`${at}: "${String(word)}" removed`)
  if (old.items && now.items) compare(`${at}[]`, old.items as JsonSchema, now.items as JsonSchema, io, found)
  for (const key of ['anyOf', 'oneOf'] as const)
    compareAlternatives(at, recordsOf(old[key]), recordsOf(now[key]), io, found)
}

const recordsOf = (value: unknown) => (value ?? []) as JsonSchema[]
const kindOf = (s: JsonSchema) => recordOf(s.properties).kind?.const ?? s.type

function compareAlternatives(
  at: string,
  old: JsonSchema[],
  now: JsonSchema[],
  io: 'input' | 'output',
  found: string[],
): void {
  for (const alternative of old) {
    const current = now.find((s) => kindOf(s) === kindOf(alternative))
    const name = String(kindOf(alternative))
    if (current) compare(`${at}(${name})`, alternative, current, io, found)
    else found.push(`${at}: alternative ${name} removed`)
  }
}
