import { execFileSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import { findUser, groupId } from './os-user'

const numberOf = (flag: string, name: string) =>
  Number(execFileSync('id', [flag, name], { encoding: 'utf8' }))

describe.runIf(process.getuid?.() === 0)('users and groups of the machine', () => {
  test('have the numbers that id tells', () => {
    for (const name of ['root', 'nobody'])
      expect(findUser(name)).toEqual({
        name,
        switchTo: { uid: numberOf('-u', name), gid: numberOf('-g', name) },
      })
    const group = execFileSync('id', ['-gn', 'nobody'], { encoding: 'utf8' }).trim()
    expect(groupId(group)).toBe(numberOf('-g', 'nobody'))
  })

  test('are not found by half a name, a pattern, or a name that nobody has', () => {
    for (const name of ['roo', 'roo.', '', 'floe-nobody-has-this']) {
      expect([name, findUser(name)]).toEqual([name, null])
      expect([name, groupId(name)]).toEqual([name, null])
    }
  })
})
