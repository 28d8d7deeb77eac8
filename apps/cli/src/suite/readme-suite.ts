import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { checkoutDirectory } from '../installation/home'
import { sourceFiles } from './static-suites'
import type { Counts, Suite, SuiteContext } from './suite'

const LINES_MAX = 120
const COLUMNS_MAX = 100
const sourceName = /^[\w.-]+\.(ts|tsx|mjs|sql|c|h|sh|pl|pm|patch|prisma|md)$/
const path = /^[\w.@()[\]-]+(\/[\w.@()[\]-]+)+\/?$/
/** Made by a build, so absent from a fresh clone. */
const built = /(^|\/)(dist|node_modules|generated|\.next|results|\.floe|\.turbo)(\/|$)/

/** Those of the paths that git ignores: made by a tool, not part of the tree. */
function ignoredByGit(root: string, paths: string[]): Set<string> {
  const { stdout } = spawnSync('git', ['check-ignore', '--stdin'], {
    cwd: root,
    encoding: 'utf8',
    input: paths.join('\n'),
  })
  return new Set((stdout ?? '').split('\n').filter(Boolean))
}

/** Words in backticks that name files or directories of the tree. */
export function mentionedPaths(markdown: string): string[] {
  const prose = markdown.replace(/^```[\s\S]*?^```/gm, '')
  return [...prose.matchAll(/`([^`\n]+)`/g)]
    .map((m) => (m[1] as string).replace(/^\.\//, ''))
    .filter((word) => (path.test(word) || sourceName.test(word)) && !built.test(word))
}

/**
 * Mentioned paths that are not there. A path counts when its first part exists beside the document or at the root of the
 * checkout (so `bin/psql` of an engine is left alone); a bare file name must exist somewhere below the document.
 */
export function missingPaths(root: string, document: string, files: string[]): string[] {
  const directory = dirname(document)
  const below = files.filter((file) => directory === '.' || file.startsWith(`${directory}/`))
  const words = mentionedPaths(readFileSync(join(root, document), 'utf8'))
  const ignored = ignoredByGit(
    root,
    words.flatMap((word) => [word, `${word}/`]),
  )
  return words.filter((word) => {
    if (ignored.has(word) || ignored.has(`${word}/`)) return false
    if (!word.includes('/'))
      return !below.some((file) => basename(file) === word) && !existsSync(join(root, word))
    const first = word.split('/')[0] as string
    const bases = [directory, join(directory, 'src'), '.'].filter((base) =>
      existsSync(join(root, base, first)),
    )
    return bases.length > 0 && !bases.some((base) => existsSync(join(root, base, word)))
  })
}

/**
 * Documents that are wrapped, one sentence a line: READMEs, the two maps, guides, checklists and the roadmap. Dated papers
 * (docs/decisions, docs/reviews, docs/upstream) stay as they were written.
 */
const wrapped = /(^|\/)README\.md$|^(ARCHITECTURE|GLOSSARY)\.md$|^docs\/((guide|checklists)\/|roadmap\.md$)/

/** Numbers of the lines of prose that are longer than COLUMNS_MAX; tables and code blocks cannot be wrapped. */
function wideLines(markdown: string): number[] {
  const wide: number[] = []
  let code = false
  for (const [index, line] of markdown.split('\n').entries()) {
    if (/^\s*```/.test(line)) code = !code
    else if (!code && !/^\s*\|/.test(line) && [...line].length > COLUMNS_MAX) wide.push(index + 1)
  }
  return wide
}

/** What is wrong with the form of a document: lines of prose too wide, a room's README longer than a page. */
export function formFaults(file: string, markdown: string): string[] {
  const faults = wrapped.test(file)
    ? wideLines(markdown).map(
        (line) => `line ${line} is longer than ${COLUMNS_MAX} columns; begin each sentence on a new line`,
      )
    : []
  const lines = markdown.trimEnd().split('\n').length
  if (basename(file) === 'README.md' && /^(apps|packages|engine\/modules)\//.test(file) && lines > LINES_MAX)
    faults.push(`it has ${lines} lines; a room's README is at most a page (${LINES_MAX})`)
  return faults
}

/** Rooms that must have a README: every app, package and engine module, and the large rooms themselves. */
function rooms(root: string): string[] {
  const below = (parent: string) =>
    existsSync(join(root, parent))
      ? readdirSync(join(root, parent), { withFileTypes: true })
          .filter((entry) => entry.isDirectory() && readdirSync(join(root, parent, entry.name)).length > 0)
          .map((entry) => join(parent, entry.name))
      : []
  return [
    '.',
    ...below('apps'),
    ...below('packages'),
    'engine',
    'engine/patches',
    'engine/tools',
    ...below('engine/modules'),
    'e2e',
  ]
}

async function readmes(context: SuiteContext): Promise<Counts> {
  const root = checkoutDirectory()
  const files = sourceFiles()
  const counts = { passed: 0, failed: 0, skipped: 0 }
  const judge = (what: string, faults: string[]) => {
    if (faults.length === 0) counts.passed++
    else counts.failed++
    for (const fault of faults) {
      context.log(`${what}: ${fault}`)
      context.failed(`${what}: ${fault}`)
    }
  }
  for (const room of rooms(root))
    judge(room, existsSync(join(root, room, 'README.md')) ? [] : ['it has no README.md'])
  for (const file of files.filter((f) => f.endsWith('.md') && existsSync(join(root, f)))) {
    const faults = missingPaths(root, file, files).map(
      (word) => `it mentions \`${word}\`, which does not exist`,
    )
    faults.push(...formFaults(file, readFileSync(join(root, file), 'utf8')))
    judge(file, faults)
  }
  return counts
}

export const readmeSuite: Suite = {
  name: 'readme',
  about: 'every room has a README, what documents mention exists, and their lines are wrapped',
  needs: 'checkout',
  run: readmes,
}
