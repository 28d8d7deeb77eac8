import { expect, test } from 'vitest'
import { repairConninfo } from './cluster-files'

const own = { name: 'one', passFile: '/i/one/repair.pgpass', noRootFile: '/i/one/no-root' }

test('a source known by its address needs no resolver; host stays first, which the engine names it by', () => {
  const from = (host: string) => repairConninfo({ host, port: 5501 }, own)
  expect(from('10.0.0.1')).toMatch(
    /^host='10\.0\.0\.1' hostaddr='10\.0\.0\.1' port='5501' dbname='postgres' /,
  )
  expect(from('fd00::1')).toMatch(/^host='fd00::1' hostaddr='fd00::1' /)
  expect(from('db-1.example')).toMatch(/^host='db-1\.example' port='5501' /)
})
