import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { FaultError } from '@floe/domain'
import { makeScratchDirectory } from '@floe/testkit'
import { afterAll, expect, test } from 'vitest'
import { readPackageFiles } from './host-packages'

const missing = spawnSync('dpkg-deb', ['--version']).status !== 0
const scratch = makeScratchDirectory()
afterAll(() => scratch.remove())

/** A package with nothing in it. */
function packed(directory: string, name: string, more = 'Floe-Distribution: debian-12\n'): string {
  const tree = join(scratch.path, 'tree')
  const file = join(scratch.path, directory, `${name}.deb`)
  mkdirSync(join(tree, 'DEBIAN'), { recursive: true })
  mkdirSync(join(scratch.path, directory), { recursive: true })
  const control = `Package: ${name}\nVersion: 1.0+2.b\nArchitecture: amd64\nMaintainer: A <a@floe.invalid>\n${more}Description: x\n`
  writeFileSync(join(tree, 'DEBIAN/control'), control)
  execFileSync('dpkg-deb', ['--root-owner-group', '--build', tree, file], { stdio: 'ignore' })
  rmSync(tree, { recursive: true })
  return file
}
const codeOf = (named: string[]) =>
  readPackageFiles(named).then(
    () => null,
    (error: unknown) => (error instanceof FaultError ? error.fault.code : String(error)),
  )

test.skipIf(missing)(
  'packages of a directory are what they say of themselves, with their digests',
  async () => {
    const files = ['floe-agent', 'floe-engine-18.4-b', 'floe-engine'].map((name) => packed('all', name))
    writeFileSync(join(scratch.path, 'all/README'), 'not a package')
    const read = await readPackageFiles([join(scratch.path, 'all')])
    expect(read.map(({ path }) => path)).toEqual(files)
    expect(read.map(({ is }) => is)).toEqual(
      files.map((file) => ({
        name: file.slice(file.lastIndexOf('/') + 1, -4),
        ...{ version: '1.0+2.b', architecture: 'amd64', distribution: 'debian-12' },
        sizeBytes: readFileSync(file).length,
        digest: createHash('sha256').update(readFileSync(file)).digest('hex'),
      })),
    )
    expect((await readPackageFiles([files[0] as string])).map(({ is }) => is.name)).toEqual(['floe-agent'])
  },
)

test.skipIf(missing)(
  'what is no package, not Floe’s, or not all that belongs together is refused',
  async () => {
    const agent = packed('some', 'floe-agent')
    mkdirSync(join(scratch.path, 'empty'))
    writeFileSync(join(scratch.path, 'text.deb'), 'text')
    expect(await codeOf([join(scratch.path, 'nowhere')])).toBe('package.not_found')
    expect(await codeOf([join(scratch.path, 'empty')])).toBe('package.not_found')
    expect(await codeOf([join(scratch.path, 'text.deb')])).toBe('package.unreadable')
    expect(await codeOf([packed('other', 'sudo')])).toBe('package.not_floe')
    expect(await codeOf([packed('older', 'floe-agent', '')])).toBe('package.not_floe')
    expect(await codeOf([agent, packed('some', 'floe-engine')])).toBe('package.incomplete')
    expect(await codeOf([agent, agent])).toBe('package.incomplete')
  },
)
