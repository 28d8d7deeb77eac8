import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { PrivateHome } from './private-home'

type Figures = { figures: { name: string; value: number }[] }

/** Loop devices and limits are root's. */
describe.runIf(process.getuid?.() === 0)('neighbours on one device', () => {
  const home = new PrivateHome()
  afterAll(() => home.remove())

  test('each keeps to its limit, and none locks itself up by it', { timeout: 600_000 }, async () => {
    const file = join(home.directory, 'figures.json')
    const { status, stdout, stderr } = await home.run(['bench', 'neighbours', '--short', '--json', file])
    expect([status, status === 0 ? '' : stdout + stderr]).toEqual([0, ''])
    const { figures } = JSON.parse(readFileSync(file, 'utf8')) as Figures
    const figure = Object.fromEntries(figures.map(({ name, value }) => [name, value]))
    expect(figure.deadlocks).toBe(0)
    expect(figure.above_limit_percent).toBeLessThanOrEqual(5)
    // how even they are, and how near to their limits, is a matter of the machine, and of the long form
    for (const name of [
      'cv_xfs',
      'cv_ext4',
      'longest_stall_s_xfs',
      'longest_stall_s_ext4',
      'limit_error_percent',
    ])
      expect(figure[name], name).toBeGreaterThan(0)
  })
})
