import { join, normalize } from 'node:path'
import { fault, programSetting } from '@floe/domain'

/** A library as the engine finds it among its own: by its name, perhaps with the directory said. */
const ownLibrary = /^(?:\$libdir\/(?:plugins\/)?)?[A-Za-z0-9_][A-Za-z0-9_.+-]*$/

/**
 * Refuses a value that would have the engine load, or look for, libraries outside its own directory: even a trial would run
 * what they hold. Throws `setting.library_outside`.
 */
export function refuseForeignLibraries(prefix: string, name: string, value: string): void {
  const kind = programSetting(name)
  const foreign =
    kind === 'library'
      ? listOf(value, ',').find((library) => !ownLibrary.test(library))
      : kind === 'library-path'
        ? listOf(value, ':').find((directory) => !isOfEngine(prefix, directory))
        : undefined
  if (foreign === undefined) return
  throw fault('setting.library_outside', `setting "${name.toLowerCase()}" names a place outside the engine`, {
    detail: `"${foreign}" does not lie in the engine’s own directory; a check would run what is in there.`,
    hint: 'Name a library of the engine, without a path. Where it has to be this one, its superuser sets it by ALTER SYSTEM or in postgresql.conf on the host.',
  })
}

/** The members of a list as the server splits it: spaces around and double quotes mean nothing to the name. */
const listOf = (value: string, separator: string): string[] =>
  value
    .split(separator)
    .map((part) => part.trim().replace(/^"(.*)"$/, '$1'))
    .filter((part) => part !== '')

function isOfEngine(prefix: string, directory: string): boolean {
  const absolute = directory.replace(/^\$(?:libdir|system)(?=\/|$)/, join(prefix, 'lib'))
  return absolute.startsWith('/') && `${normalize(absolute)}/`.startsWith(`${prefix}/`)
}
