import { commandKindsThat, type OrderField, operationRecords, orderFields } from '@floe/domain'
import { Command } from 'commander'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { addOrders, optionOf } from './order'

const instance = () => {
  const group = new Command('instance')
  addOrders(group)
  return group
}
const optionsOf = (group: Command, verb: string) =>
  group.commands.find((c) => c.name() === verb)?.options.map((o) => o.flags)

test('every kind of the noun is a verb, with the parts of its input as options', () => {
  const group = instance()
  expect(group.commands.map((c) => c.name())).toEqual(
    expect.arrayContaining(['start', 'stop', 'restart', 'reload', 'require-tls', 'delete']),
  )
  expect(optionsOf(group, 'delete')).toEqual([
    '--json',
    '--idempotency-key <key>',
    '--confirm <name>',
    '--keep-files',
    '--no-wait',
  ])
})

test('every operation that is only ordered has its verb', async () => {
  const floe = new Command('floe')
  const nouns = new Set(commandKindsThat(() => true).map((kind) => operationRecords[kind].order.noun))
  for (const noun of nouns) {
    const command = await import(`../command/${noun}.ts`)
    command[`add${noun[0]?.toUpperCase()}${noun.slice(1)}`](floe)
  }
  const missing = commandKindsThat(() => true)
    .map((kind) => operationRecords[kind].order)
    .filter(({ noun, verb }) => {
      const group = floe.commands.find((c) => c.name() === noun)
      const hyphened = verb.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
      return !group?.commands.some((c) => c.name() === hyphened)
    })
  expect(missing).toEqual([])
})

test('what only Floe fills in cannot be asked for', () => {
  expect(Object.keys(operationRecords['stop-instance'].input.shape)).toContain('hastened')
  expect(optionsOf(instance(), 'stop')).not.toContain('--hastened')
})

const field = (more: Partial<OrderField>): OrderField => ({
  name: 'given',
  title: 'Given',
  description: 'what is given',
  form: 'text',
  choices: [],
  optional: false,
  standard: undefined,
  schema: z.string(),
  ...more,
})

test('an option is mandatory where the input has to have it, and has the input’s standard value and choices', () => {
  const [confirm, keep] = orderFields('delete-instance').map(optionOf)
  expect([confirm?.flags, confirm?.mandatory]).toEqual(['--confirm <name>', true])
  expect([keep?.flags, keep?.mandatory, keep?.defaultValue]).toEqual(['--keep-files', false, undefined])
  const [mode] = orderFields('stop-instance').map(optionOf)
  expect([mode?.mandatory, mode?.defaultValue, mode?.argChoices]).toEqual([
    false,
    'fast',
    ['fast', 'immediate'],
  ])
  const left = optionOf(field({ name: 'unreachableHost', optional: true }))
  expect([left.flags, left.mandatory]).toEqual(['--unreachable-host <unreachable-host>', false])
})

test('a value that the input would refuse is refused by name', () => {
  const count = optionOf(field({ schema: z.number().max(3, 'must be at most 3') }))
  expect(count.parseArg?.('2', undefined)).toBe(2)
  expect(() => count.parseArg?.('4', undefined)).toThrow('must be at most 3')
})
