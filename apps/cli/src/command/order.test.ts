import { operationRecords } from '@floe/domain'
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

test('what only Floe fills in cannot be asked for', () => {
  expect(Object.keys(operationRecords['stop-instance'].input.shape)).toContain('hastened')
  expect(optionsOf(instance(), 'stop')).not.toContain('--hastened')
})

test('an option is mandatory where the input has to have it, and has the input’s standard value and choices', () => {
  const confirm = optionOf('confirmName', z.string())
  expect([confirm.flags, confirm.mandatory]).toEqual(['--confirm <name>', true])
  const mode = optionOf('mode', operationRecords['stop-instance'].input.shape.mode)
  expect([mode.mandatory, mode.defaultValue, mode.argChoices]).toEqual([false, 'fast', ['fast', 'immediate']])
  const left = optionOf('unreachableHost', z.string().nullable().default(null))
  expect([left.flags, left.mandatory, left.defaultValue]).toEqual([
    '--unreachable-host <unreachable-host>',
    false,
    undefined,
  ])
})

test('a value that the input would refuse is refused by name', () => {
  const count = optionOf('count', z.number().int('must be a whole number').max(3, 'must be at most 3'))
  expect(count.parseArg?.('2', undefined)).toBe(2)
  expect(() => count.parseArg?.('4', undefined)).toThrow('must be at most 3')
})
