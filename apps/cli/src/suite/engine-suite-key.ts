import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { lstatSync, readFileSync, readlinkSync } from 'node:fs'
import { machine, release, version } from 'node:os'
import { join } from 'node:path'
import { sourceFiles } from './static-suites'

/** What decides the result of the engine's suite in a checkout: the engine with its tests and tools, and what runs them. */
const decisive = ['engine', 'apps/cli/src/suite', 'apps/cli/src/run-program.ts']

/** What a program that tells of the system prints. */
export const outputOf = (program: string, args: string[]) =>
  spawnSync(program, args, { encoding: 'utf8' }).stdout ?? ''

/** What decides it outside of the checkout: system, kernel, compiler, C library, and the packages that the engine's tool names. */
export function systemUnderTest(root: string): string {
  const packages = outputOf(join(root, 'engine/tools/engine'), ['packages']).split('\n').filter(Boolean)
  return [
    readFileSync('/etc/os-release', 'utf8'),
    machine(),
    release(),
    version(),
    outputOf('gcc', ['-dumpfullversion', '-dumpmachine']),
    outputOf('getconf', ['GNU_LIBC_VERSION']),
    // biome-ignore lint/suspicious/noTemplateCurlyInString: dpkg's own placeholders
    outputOf('dpkg-query', ['-W', '-f', '${Package} ${Version} ${db:Status-Abbrev}\n', ...packages]),
    // as root the suite runs as a user of its own, and tests that need that are not left out
    process.getuid?.() === 0 ? 'root' : 'no root',
    process.env.PG_TEST_EXTRA ?? '',
  ].join('\0')
}

/** What a path holds: a file with its bytes and whether it can be run, or a link with where it leads. */
function contentOf(path: string): string | Buffer | null {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (!found) return null
  if (found.isSymbolicLink()) return `-> ${readlinkSync(path)}`
  return Buffer.concat([Buffer.from(found.mode & 0o100 ? 'program ' : 'file '), readFileSync(path)])
}

/** A hash of everything that decides the result of the engine's suite. */
export function engineSuiteKey(root: string, system: string): string | null {
  // tests of what runs the suite decide nothing of it
  return keyOf(root, decisive, system, (file) => !/^apps\/.*\.test\.ts$/.test(file))
}

/**
 * A hash of files and of the system. Files count that git knows or would add; what it ignores was built from them. Null
 * where git cannot say which these are.
 */
export function keyOf(
  root: string,
  below: string[],
  system: string,
  decides: (file: string) => boolean = () => true,
): string | null {
  let files: string[]
  try {
    files = sourceFiles(root, below).filter(decides)
  } catch {
    return null
  }
  const hash = createHash('sha256').update(system)
  for (const file of [...new Set(files)].sort()) {
    const content = contentOf(join(root, file))
    if (content === null) continue
    hash.update(`\0${file}\0`).update(createHash('sha256').update(content).digest())
  }
  return hash.digest('hex')
}
