import type { Fault } from '@floe/domain'
import { renderToStaticMarkup } from 'react-dom/server'
import { expect, test } from 'vitest'
import type { Member } from '../cluster/use-cluster'
import { MembersCard, type MembersRead } from './members-card'

const on = { port: 6_500, enabled: true, dispatcher: 'running' }
const off = { port: null, enabled: false, dispatcher: null }
const member = (name: string, sharedServer: object, state = 'running') =>
  ({ instanceId: name, name, hostName: `of-${name}`, memberRole: 'standby', state, sharedServer }) as Member
const fault: Fault = { code: 'console.unreachable', message: 'could not reach the console' }

const shown = (read: Partial<MembersRead>) =>
  renderToStaticMarkup(
    <MembersCard
      read={{ members: null, count: 2, readAt: null, fault: null, retry: () => {}, ...read }}
      everyMember
      onEveryMember={() => {}}
    />,
  )
const rows = (html: string) => html.split('<tbody')[1]?.match(/<tr/g)?.length ?? 0
const label = 'Change every member'

test('while the members are read the card has its columns, its rows and no choice yet', () => {
  const loading = shown({ count: 3 })
  const loaded = shown({ members: ['a', 'b', 'c'].map((name) => member(name, on)), readAt: 0 })
  expect([rows(loading), rows(loaded)]).toEqual([3, 3])
  for (const html of [loading, loaded]) {
    expect(html).toContain('Shared port')
    expect(html).toContain(label)
  }
  expect(loading).toContain('Reading the members')
  expect(loading).toMatch(/<button[^>]* disabled=""/)
  expect(loaded).not.toMatch(/<button[^>]* disabled=""/)
})

test('members that could not be read are unknown, with the fault and a way to try again', () => {
  const html = shown({ fault })
  expect(html).toContain('The members are unknown.')
  expect(html).toContain('could not reach the console')
  expect(html).toContain('Try again')
  expect(rows(html)).toBe(0)
})

test('what was read before a fault is told as that, and calls nobody on', () => {
  const members = [member('a', on), member('b', off), member('c', on, 'stopped')]
  const html = shown({ members, readAt: 0, fault })
  expect(html).toContain('On when last seen')
  expect(html).toContain('Off when last seen')
  expect(html).toContain('Instance stopped when last seen')
  expect(html).not.toContain('The members are unknown.')
  const fresh = shown({ members, readAt: 0 })
  expect(fresh).toContain('Not on: b')
  expect(fresh).not.toContain('when last seen')
})
