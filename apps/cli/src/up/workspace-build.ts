import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fault } from '@floe/domain'
import { cacheDirectory, checkoutDirectory, makeDirectory } from '../installation/home'
import { type ProgramName, programNames, programs } from '../process/records'
import type { StepReport } from '../progress/progress'
import { runProgram } from '../run-program'
import { holdLock } from './lock'

const skipped = new Set(['node_modules', 'dist', '.next', '.turbo', 'generated', 'coverage'])

function fingerprintOf(hash: ReturnType<typeof createHash>, path: string): void {
  for (const entry of readdirSync(path, { withFileTypes: true }).sort((a, b) =>
    a.name.localeCompare(b.name),
  )) {
    if (skipped.has(entry.name)) continue
    const child = join(path, entry.name)
    if (entry.isDirectory()) fingerprintOf(hash, child)
    else if (entry.isFile()) {
      const { mtimeMs, size } = statSync(child)
      hash.update(`${child}\0${mtimeMs}\0${size}\n`)
    }
  }
}

/** Names the state of everything that the TypeScript build reads: path, time and size of each source file. */
function sourcesFingerprint(checkout: string): string {
  const hash = createHash('sha256')
  for (const name of ['apps', 'infra/host-check', 'packages', 'tooling'])
    fingerprintOf(hash, join(checkout, name))
  for (const name of ['package-lock.json', 'package.json', 'turbo.json'])
    hash.update(readFileSync(join(checkout, name)))
  return hash.digest('hex')
}

/** A build of everything has a stamp of its own: it is good for each program too. */
const stampFile = (checkout: string, names: readonly ProgramName[]) =>
  join(
    checkout,
    `node_modules/.floe-built${names.length === programNames.length ? '' : `-${names.join('-')}`}`,
  )

/** True when the last build of these programs saw these very sources and its results are still there. */
export function workspaceIsBuilt(names: readonly ProgramName[] = programNames): boolean {
  const checkout = checkoutDirectory()
  if (!names.every((name) => existsSync(join(checkout, programs[name].built)))) return false
  const fingerprint = sourcesFingerprint(checkout)
  return [programNames, names].some((built) => {
    try {
      return readFileSync(stampFile(checkout, built), 'utf8') === fingerprint
    } catch {
      return false
    }
  })
}

const CACHE_DAYS = 14

function forgetOldBuilds(directory: string): void {
  for (const name of readdirSync(directory)) {
    const file = join(directory, name)
    if (Date.now() - statSync(file).mtimeMs > CACHE_DAYS * 86_400_000)
      rmSync(file, { recursive: true, force: true })
  }
}

/** The end of what the compilers said, without what npm and turbo say about its failing. */
function compilerWords(lines: string[]): string {
  const noise = /npm (error|warn)|^\s*(Tasks|Cached|Time|Failed):|^\s*ERROR |#build:\s+ERROR|^\s*$|:build: *$/
  return lines
    .filter((line) => !noise.test(line))
    .slice(-10)
    .join('\n')
}

/**
 * Builds programs (agent, controller and web); what was built before from the same sources comes from the cache. One run
 * at a time: two installations may be brought up from one checkout at once, and both builds would write the same files.
 */
export async function buildWorkspace(
  report: StepReport,
  names: readonly ProgramName[] = programNames,
): Promise<void> {
  const checkout = checkoutDirectory()
  const locks = join(cacheDirectory(), 'lock')
  makeDirectory(locks)
  const lock = await holdLock(
    join(locks, `build-${createHash('sha256').update(checkout).digest('hex').slice(0, 16)}`),
    () => report.now('waiting: another run builds this checkout'),
    'another run builds this checkout',
  )
  try {
    if (!workspaceIsBuilt(names)) await build(checkout, report, names)
  } finally {
    await lock.release()
  }
}

async function build(checkout: string, report: StepReport, names: readonly ProgramName[]): Promise<void> {
  const fingerprint = sourcesFingerprint(checkout)
  const cache = join(cacheDirectory(), 'turbo')
  makeDirectory(cache)
  let doing = ''
  const { status, tail } = await runProgram(
    join(checkout, 'node_modules/.bin/turbo'),
    [
      'run',
      'build',
      '--cache-dir',
      cache,
      '--output-logs',
      'new-only',
      ...names.map((name) => `--filter=@floe/${name}`),
    ],
    {
      cwd: checkout,
      env: {
        ...process.env,
        PATH: `${join(process.execPath, '..')}:${process.env.PATH}`,
        NODE_ENV: 'production',
        TURBO_UI: 'false',
      },
      onLine: (line) => {
        const task = line.match(/^(@floe\/[a-z-]+):([a-z]+): cache (miss|hit)/)
        // they run side by side, and web takes longest
        if (task && !(doing.includes('@floe/web') && task[1] !== '@floe/web')) {
          doing = `${task[1]} ${task[2]}`
          report.now(doing)
        } else report.log(line)
      },
    },
  )
  if (status !== 0)
    throw fault('workspace.not_built', 'could not build the console', {
      detail: compilerWords(tail),
      hint: 'See the log for the compiler’s messages.',
    })
  // an old npm ends with 0 though what it ran failed
  const missing = names.filter((name) => !existsSync(join(checkout, programs[name].built)))
  if (missing.length > 0)
    throw fault('workspace.not_built', `the build of ${missing.join(' and ')} left nothing behind`, {
      detail: compilerWords(tail),
      hint: 'See the log for the compiler’s messages. "npm --version" should say 10 or newer.',
    })
  writeFileSync(stampFile(checkout, names), fingerprint)
  forgetOldBuilds(cache)
}
