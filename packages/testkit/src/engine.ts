import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Prefix of the engine that integration tests run against, from FLOE_TEST_ENGINE_PREFIX. Throws without one: a test that
 * has no engine fails, it does not pass for want of one.
 */
export function testEnginePrefix(): string {
  const prefix = process.env.FLOE_TEST_ENGINE_PREFIX
  if (!prefix)
    throw new Error(
      'FLOE_TEST_ENGINE_PREFIX is not set: run the tests by "./floe test unit", which sets it to the engine it built',
    )
  if (!existsSync(join(prefix, 'bin', 'postgres')))
    throw new Error(`FLOE_TEST_ENGINE_PREFIX: no engine in "${prefix}"`)
  return prefix
}

/** The unprivileged user that engines run as in tests: `floe` for root, else the own one (all null). */
export function testEngineUser(): { name: string | null; uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return { name: null }
  const row = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
    .find((r) => r[0] === 'floe')
  if (!row) throw new Error('user "floe" does not exist: "./floe test" as root creates it')
  return { name: 'floe', uid: Number(row[2]), gid: Number(row[3]) }
}
