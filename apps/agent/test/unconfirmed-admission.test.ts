import { afterAll, beforeAll, expect, test } from 'vitest'
import { AgentFixture } from './agent-fixture'
import { StandbyFixture } from './standby-fixture'

let f: AgentFixture
let s: StandbyFixture
let primary: string
const setting = async (name: string, value: string) => {
  await f.query(primary, `alter system set ${name} = '${value}'`)
  await f.query(primary, 'select pg_reload_conf()')
}

beforeAll(async () => {
  f = await AgentFixture.start(20)
  s = new StandbyFixture(f)
  primary = await s.primary('alpha')
})
afterAll(() => f.remove())

test('a standby is admitted while no commit is confirmed: nobody else could confirm one again', async () => {
  await setting('synchronous_standby_names', 'ANY 1 ("alpha-2")')
  await setting('polar_commit_floor', 'on')
  const { id } = await s.standby(primary, 'alpha-2')
  await s.caughtUp(primary, id)
  // it has come as its role, which is there for it too, and so it confirms commits from here on
  expect(await f.query(primary, 'create table confirmed (n int)')).toEqual([])
}, 120_000)
