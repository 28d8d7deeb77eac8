import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { checkoutDirectory } from '../installation/home'

export type Workspace = {
  name: string
  directory: string
  scripts: Record<string, string>
  /** Names of what it depends on, for its tests too. */
  dependencies: string[]
}

type Package = Partial<
  Pick<Workspace, 'name' | 'scripts'> & Record<'dependencies' | 'devDependencies', Record<string, string>>
>

/** The workspaces that package.json names, in a fixed order. */
export function workspaces(): Workspace[] {
  const checkout = checkoutDirectory()
  const root = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8')) as { workspaces: string[] }
  return root.workspaces
    .flatMap((pattern) => globSync(join(pattern, 'package.json'), { cwd: checkout }))
    .sort()
    .map((file) => {
      const text = readFileSync(join(checkout, file), 'utf8')
      const { name, scripts = {}, dependencies, devDependencies } = JSON.parse(text) as Package
      return {
        name: name ?? dirname(file),
        directory: join(checkout, dirname(file)),
        scripts,
        dependencies: Object.keys({ ...dependencies, ...devDependencies }),
      }
    })
}
