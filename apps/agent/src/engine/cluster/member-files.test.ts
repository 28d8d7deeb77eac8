import { expect, test } from 'vitest'
import { formatClusterHba, repairConninfo } from './member-files'

const own = {
  name: 'one',
  passFile: '/i/one/repair.pgpass',
  noRootFile: '/i/one/no-root',
  role: 'floe_repair_one_0123456789abcdef',
}

test('a source known by its address needs no resolver; host stays first, which the engine names it by', () => {
  const from = (host: string) => repairConninfo({ host, port: 5501 }, own)
  expect(from('10.0.0.1')).toMatch(
    /^host='10\.0\.0\.1' hostaddr='10\.0\.0\.1' port='5501' dbname='postgres' /,
  )
  expect(from('fd00::1')).toMatch(/^host='fd00::1' hostaddr='fd00::1' /)
  expect(from('db-1.example')).toMatch(/^host='db-1\.example' port='5501' /)
})

test('the members’ lines name their roles quoted, once, and who asks for pages does not replicate', () => {
  const text = formatClusterHba(['floe_standby_one_2_aa', 'floe_repair_one_bb', 'floe_repair_one_bb'])
  const rules = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  expect(rules.map((line) => line.split(/ +/).join(' '))).toEqual([
    'local all "floe" peer map=floe',
    'hostssl "postgres" "floe_repair_one_bb" all scram-sha-256',
    'hostssl replication "floe_standby_one_2_aa" all scram-sha-256',
    'hostssl "postgres" "floe_standby_one_2_aa" all scram-sha-256',
    'hostnossl all,replication "/^floe_(standby|repair)_" all reject',
  ])
})

test.each(['floe_repair_ all trust\nhost all all all trust #', 'all', 'floe_standby_a" all trust #', '/^x'])(
  'pg_hba.conf takes no line from a role named %j',
  (role) => {
    expect(() => formatClusterHba([role])).toThrow()
  },
)
