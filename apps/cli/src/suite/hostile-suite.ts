import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkoutDirectory } from '../installation/home'
import { filesToRun } from './quick-files'
import { type Counts, none, type Suite, type SuiteContext } from './suite'
import { settle } from './test-files'
import { vitest } from './vitest-suites'

/** What the set-up of the attacks writes down at their end (hostile/installation-under-attack.ts). */
type Summary = {
  attempts: number
  gotIn: string[]
  notMade: string[]
  crashed: string[]
  leftBehind: string[]
  notTried: string[]
}

/** What the attacks came to, in lines for people; the last has the four counts. */
export function hostileLines(summary: Summary): string[] {
  const { attempts, gotIn, notMade, crashed, leftBehind, notTried } = summary
  const named = (title: string, lines: string[]) => lines.map((line) => `${title}: ${line}`)
  return [
    ...named('got in', gotIn),
    ...named('not made', notMade),
    ...named('crashed', crashed),
    ...named('left behind', leftBehind),
    ...named('not tried here', notTried),
    `attempts ${attempts}, got in ${gotIn.length}, crashed ${crashed.length}, left behind ${leftBehind.length}`,
  ]
}

/** Attacks on a private installation. What crashed or was left behind fails it though every attempt was held off. */
async function hostile(context: SuiteContext): Promise<Counts> {
  if (process.getuid?.() !== 0) {
    context.say('needs root: without it a host is one trust domain, and there is no boundary to attack')
    return { ...none, skipped: 1 }
  }
  await context.enginePrefix()
  for (const name of ['xfsprogs', 'python3', 'curl', 'gcc']) await context.packages(name)
  const scratch = mkdtempSync(join(tmpdir(), 'floe-hostile-summary-'))
  const file = join(scratch, 'summary.json')
  try {
    const { more } = filesToRun(context, 'hostile')
    const run = await vitest({ ...context, more }, join(checkoutDirectory(), 'apps/cli'), {
      config: 'vitest.hostile.config.ts',
      env: { FLOE_HOSTILE_SUMMARY: file },
    })
    // who got in once got in: nothing here is tried twice
    const counts = await settle({ ...context, secondTry: false }, [run])
    if (!existsSync(file)) return { ...counts, failed: Math.max(1, counts.failed) }
    const summary = JSON.parse(readFileSync(file, 'utf8')) as Summary
    for (const line of hostileLines(summary)) context.say(line)
    // what got in or was not made is a failed test already
    for (const line of [...summary.crashed, ...summary.leftBehind]) context.failed(line)
    return { ...counts, failed: counts.failed + summary.crashed.length + summary.leftBehind.length }
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

export const hostileSuite: Suite = {
  name: 'hostile',
  about:
    'a hostile superuser, OS user, web page, account, host and replication peer against a private installation',
  needs: 'users',
  run: hostile,
}
