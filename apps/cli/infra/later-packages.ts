import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export const field = (deb: string, name: string): string =>
  execFileSync('dpkg-deb', ['--field', deb, name], { encoding: 'utf8' }).trim()

/** Makes packages of these as a later version would have them, quickly: the same programs, and the engine as the build "next". */
export function laterPackages(built: readonly string[], directory: string): string[] {
  const [engine, newest, agent] = built as [string, string, string]
  mkdirSync(directory, { recursive: true })
  const later = (deb: string, name: string, change: (tree: string, control: string) => string): string => {
    const tree = join(directory, 'tree')
    execFileSync('dpkg-deb', ['--raw-extract', deb, tree])
    const control = join(tree, 'DEBIAN/control')
    const text = change(tree, readFileSync(control, 'utf8'))
    writeFileSync(control, text.replace(/^(Version: .*)$/m, '$1.1'))
    const file = join(directory, name)
    const build = ['-Zzstd', '-z1', '--root-owner-group', '--build', tree, file]
    execFileSync('dpkg-deb', build, { stdio: 'ignore' })
    rmSync(tree, { recursive: true })
    return file
  }
  const own = field(engine, 'Package')
  const key = own.replace('floe-engine-', '')
  const next = `${key.slice(0, -4)}next`
  return [
    later(engine, 'engine.deb', (tree, control) => {
      renameSync(join(tree, 'usr/lib/floe/engine', key), join(tree, 'usr/lib/floe/engine', next))
      renameSync(join(tree, 'usr/share/doc', own), join(tree, 'usr/share/doc', `floe-engine-${next}`))
      return control.replaceAll(key, next)
    }),
    later(newest, 'newest.deb', (tree, control) => {
      execFileSync('ln', ['-sfn', next, join(tree, 'usr/lib/floe/engine/current')])
      return control.replaceAll(key, next)
    }),
    later(agent, 'agent.deb', (tree, control) => {
      const file = join(tree, 'usr/lib/floe/floe-package.json')
      writeFileSync(file, readFileSync(file, 'utf8').replace(/"\s*}/, '.1" }'))
      return control
    }),
  ]
}
