import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const header = 'include/postgresql/server/utils/builtin_preload.h'

/** The modules that an engine was built to load at each start, as far as their libraries are there; a plain one has none. */
export function builtinModules(enginePrefix: string): string[] {
  const path = join(enginePrefix, header)
  const text = existsSync(path) ? readFileSync(path, 'utf8') : ''
  const [, list = ''] = /^#define BUILTIN_PRELOAD_LIBRARIES "(.*)"$/m.exec(text) ?? []
  return list
    .split(',')
    .map((library) => library.trim().replace('$libdir/', ''))
    .filter((module) => module && existsSync(join(enginePrefix, 'lib/postgresql', `${module}.so`)))
}

/** Those of its modules that have SQL objects: extensions that every instance gets when it is made. */
export const builtinExtensions = (enginePrefix: string): string[] =>
  builtinModules(enginePrefix).filter((module) =>
    existsSync(join(enginePrefix, 'share/postgresql/extension', `${module}.control`)),
  )
