// Exit status 0 when node_modules already agrees with package-lock.json, as after an `npm install` by hand: then the
// launcher need not install anything again. Compares npm's own record of what it installed with the lock, and looks for
// the links to our own packages: a new one is no reason for npm to have another record.
import { readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'

const checkout = process.argv[2] ?? '.'
const packagesOf = (file) => JSON.parse(readFileSync(join(checkout, file), 'utf8')).packages

/** True when a package of ours is found where its dependents look for it. */
function isLinked(path, { resolved }) {
  try {
    return realpathSync(join(checkout, path)) === realpathSync(join(checkout, resolved))
  } catch {
    return false
  }
}

/** Paths whose installed version is not the locked one; packages for other platforms may be absent. */
function differences(locked, installed) {
  return Object.entries(locked)
    .filter(([path]) => path.includes('node_modules/'))
    .filter(([path, entry]) => {
      if (entry.link) return !isLinked(path, entry)
      const found = installed[path]
      return found === undefined ? !entry.optional : found.version !== entry.version
    })
    .map(([path]) => path)
}

try {
  process.exit(
    differences(packagesOf('package-lock.json'), packagesOf('node_modules/.package-lock.json')).length === 0
      ? 0
      : 1,
  )
} catch {
  process.exit(1)
}
