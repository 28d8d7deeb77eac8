import { createHash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fault, type Installation } from '@floe/domain'
import { type ProgramName, programs } from '../process/records'
import { runProgram } from '../run-program'
import { makeDirectory } from './home'
import { findUser, reachableBy } from './os-user'

/** Programs that run as users of their own. */
export const confined = ['web', 'controller'] as const
export const isConfined = (name: ProgramName): name is (typeof confined)[number] =>
  (confined as readonly string[]).includes(name)

/** What of the checkout these programs need to run. Packages that the controller's bundle leaves outside are web's. */
const parts = ['apps/web/.next/BUILD_ID', 'apps/web/.next/standalone', 'apps/controller/dist'] as const
const packages = 'apps/web/.next/standalone/node_modules'

const directoryOf = (installation: Installation) => join(installation.consoleDirectory, 'programs')
const currentOf = (installation: Installation) => join(directoryOf(installation), 'current')

/** Where a program is started from: the checkout, or where the users of web and controller reach a copy of it. */
export function programDirectory(
  checkout: string,
  installation: Installation | null,
  name: ProgramName,
): string {
  if (installation === null || installation.users === null || !isConfined(name)) return checkout
  const current = currentOf(installation)
  try {
    return join(dirname(current), readlinkSync(current))
  } catch {
    return current
  }
}

const startFiles = (checkout: string) =>
  readdirSync(join(checkout, 'apps/web'))
    .filter((name) => name.endsWith('.mjs'))
    .map((name) => `apps/web/${name}`)

/** Names a build by what changes with each. */
function markOf(checkout: string): string {
  const hash = createHash('sha256')
  for (const file of [...confined.map((name) => programs[name].built), ...startFiles(checkout)])
    hash.update(`${file}\0`).update(readFileSync(join(checkout, file)))
  return hash.digest('hex').slice(0, 16)
}

/**
 * Copies the built web and controller to where their users can read and nobody but root can write them: the checkout may
 * lie in a root user's home. One directory per build, made whole before it gets its name; `inUse` are those that a
 * program still runs from.
 */
export async function placePrograms(
  checkout: string,
  installation: Installation,
  inUse: ReadonlySet<string>,
): Promise<void> {
  const { users } = installation
  if (users === null) return
  const all = directoryOf(installation)
  const current = currentOf(installation)
  makeDirectory(all)
  const mark = markOf(checkout)
  const target = join(all, mark)
  if (!existsSync(target)) {
    const staging = mkdtempSync(join(all, '.new-'))
    for (const part of [...parts, ...startFiles(checkout)]) {
      mkdirSync(dirname(join(staging, part)), { recursive: true })
      cpSync(join(checkout, part), join(staging, part), { recursive: true, verbatimSymlinks: true })
    }
    symlinkSync(packages, join(staging, 'node_modules'))
    const { status, tail } = await runProgram('chmod', ['-R', 'u=rwX,go=rX', staging])
    if (status !== 0)
      throw fault('installation.not_placed', `could not copy the console to "${all}"`, {
        detail: tail.join('\n'),
      })
    renameSync(staging, target)
  }
  if (!existsSync(current) || readlinkSync(current) !== mark) {
    const next = join(all, `.current-${process.pid}`)
    rmSync(next, { force: true })
    symlinkSync(mark, next)
    renameSync(next, current)
  }
  for (const name of readdirSync(all)) {
    const directory = join(all, name)
    if (name === mark || directory === current || inUse.has(basename(directory))) continue
    if (lstatSync(directory).isDirectory() || name.startsWith('.'))
      rmSync(directory, { recursive: true, force: true })
  }
  for (const name of [users.web, users.controller]) {
    const user = findUser(name)
    const missing =
      user &&
      [process.execPath, join(target, 'apps/web/start.mjs')].find((file) => !reachableBy(user, file, '-r'))
    if (missing)
      throw fault('installation.unreachable', `user "${name}" cannot read "${missing}"`, {
        detail: 'A directory above it does not let that user through.',
        hint: 'Put Node where every user can run it.',
      })
  }
}
