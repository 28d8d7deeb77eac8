import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { checkoutDirectory } from '../installation/home'
import { type Counts, parseCounts, runInCheckout, type Suite, type SuiteContext } from './suite'
import { firstLine } from './test-files'
import { workspaces } from './workspaces'

const program = (name: string) => join(checkoutDirectory(), 'node_modules/.bin', name)

/** Files of the checkout that git knows or would add; only those below the named paths, where any are. */
export function sourceFiles(root = checkoutDirectory(), below: string[] = []): string[] {
  return execFileSync(
    'git',
    ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--', ...below],
    { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] },
  )
    .split('\0')
    .filter(Boolean)
}

async function lint(context: SuiteContext): Promise<Counts> {
  const { status, tail } = await runInCheckout(context, program('biome'), [
    'ci',
    '--error-on-warnings',
    '--colors=off',
    '--max-diagnostics=200',
    '.',
  ])
  const text = tail.join('\n')
  const checked = Number(text.match(/Checked (\d+) files?/)?.[1] ?? 0)
  const found = [...text.matchAll(/Found (\d+) (?:error|warning)s?/g)].reduce(
    (sum, m) => sum + Number(m[1]),
    0,
  )
  const failed = status === 0 ? 0 : Math.max(1, Math.min(found, Math.max(checked, 1)))
  // Biome's line of what it found where: a file, a line, a rule
  for (const [where] of text.matchAll(/^\S+\.\w+(?::\d+:\d+ lint\/\S+| (?:format|organizeImports)\b).*$/gm))
    context.failed(where.replace(/ ━.*$/, ''))
  return { passed: Math.max(0, checked - failed), failed, skipped: 0 }
}

/** Makes the sources that are not kept in git; answers whether that worked. */
async function generate(context: SuiteContext): Promise<boolean> {
  const { status } = await runInCheckout(context, program('turbo'), [
    'run',
    'generate',
    '--output-logs',
    'errors-only',
  ])
  return status === 0
}

async function types(context: SuiteContext): Promise<Counts> {
  if (!(await generate(context))) return { passed: 0, failed: 1, skipped: 0 }
  const { stdout, tail, status } = await runInCheckout(context, process.execPath, [
    // a compiler makes many things that soon are garbage: a sixth less work than with the 16 MB of Node
    '--max-semi-space-size=64',
    'tooling/types/check.mjs',
  ])
  for (const line of stdout.split('\n')) if (/^(\S.*)?\berror TS\d+: /.test(line)) context.failed(line)
  const counts = parseCounts(stdout) ?? { passed: 0, failed: 0, skipped: 0 }
  if (status === 0 || counts.failed > 0) return counts
  // the check itself broke off
  context.failed(tail.at(-1) ?? 'the types were not checked')
  return { ...counts, failed: 1 }
}

async function boundaries(context: SuiteContext): Promise<Counts> {
  const { stdout, tail, status } = await runInCheckout(context, process.execPath, [
    'tooling/boundaries/check.mjs',
  ])
  if (status !== 0)
    for (const line of tail) if (line !== '' && !/^\s|\d+ passed/.test(line)) context.failed(line)
  return parseCounts(stdout) ?? { passed: 0, failed: status === 0 ? 0 : 1, skipped: 0 }
}

async function unused(context: SuiteContext): Promise<Counts> {
  if (!(await generate(context))) return { passed: 0, failed: 1, skipped: 0 }
  const { stdout, status } = await runInCheckout(context, program('knip'), [
    '--no-progress',
    '--treat-config-hints-as-errors',
    '--reporter',
    'compact',
  ])
  const lines = stdout.split('\n').filter((line) => line.includes(': '))
  if (status !== 0) for (const line of lines) context.failed(line)
  return status === 0
    ? { passed: workspaces().length, failed: 0, skipped: 0 }
    : { passed: 0, failed: Math.max(1, lines.length), skipped: 0 }
}

/** Shell scripts: those that say so in their first line, and parts that are read in by them. */
function shellScripts(): string[] {
  return sourceFiles().filter((file) => {
    if (/\.(ts|tsx|mjs|json|md|c|h|sql|out|patch|pl|pm)$/.test(file)) return false
    try {
      const text = readFileSync(join(checkoutDirectory(), file), 'utf8').slice(0, 200)
      return /^#!.*\b(ba|da)?sh\b/.test(text) || text.startsWith('# shellcheck shell=')
    } catch {
      return false
    }
  })
}

/** Functions that a script and the parts that it reads in define twice: the later one would silently be the one of both. */
function functionsDefinedTwice(script: string): string[] {
  const text = readFileSync(join(checkoutDirectory(), script), 'utf8')
  const parts = [...text.matchAll(/^# shellcheck source=SCRIPTDIR\/(\S+)$/gm)].map(([, part]) =>
    readFileSync(join(checkoutDirectory(), dirname(script), part as string), 'utf8'),
  )
  const names = [text, ...parts].flatMap((t) =>
    [...t.matchAll(/^(\w+)\(\)/gm)].map(([, name]) => name as string),
  )
  return [...new Set(names.filter((name, i) => names.indexOf(name) !== i))]
}

async function shell(context: SuiteContext): Promise<Counts> {
  const scripts = shellScripts()
  if (!(await context.packages('shellcheck'))) {
    context.log('shellcheck is not installed and cannot be installed from here')
    return { passed: 0, failed: 0, skipped: scripts.length }
  }
  const counts = { passed: 0, failed: 0, skipped: 0 }
  for (const script of scripts) {
    const { stdout, status } = await runInCheckout(context, 'shellcheck', ['-x', '--format=gcc', script])
    const twice = functionsDefinedTwice(script)
    if (status === 0 && twice.length === 0) counts.passed++
    else counts.failed++
    if (status !== 0) context.failed(`${script}: ${firstLine(stdout)}`)
    else if (twice.length > 0) context.failed(`${script}: defines ${twice.join(', ')} twice, with its parts`)
  }
  return counts
}

export const staticSuites: Suite[] = [
  {
    name: 'lint',
    about: 'Biome: rules and format of TypeScript, JSON and CSS',
    needs: 'checkout',
    run: lint,
  },
  { name: 'boundaries', about: 'import rules of ARCHITECTURE.md', needs: 'checkout', run: boundaries },
  {
    name: 'unused',
    about: 'knip: files, exports and dependencies that nothing uses (knip.jsonc)',
    needs: 'checkout',
    run: unused,
  },
  { name: 'shell', about: 'shellcheck over every shell script', needs: 'checkout', run: shell },
  {
    name: 'types',
    about: 'TypeScript: every source, in the workspace that includes it',
    needs: 'checkout',
    run: types,
  },
]
