import { spawnSync } from 'node:child_process'
import { closeSync, openSync, readdirSync, readSync, statSync } from 'node:fs'
import { join } from 'node:path'
import {
  FaultError,
  fault,
  formatBytes,
  HostPackage,
  PACKAGE_PIECE_BYTES,
  whyNotTogether,
} from '@floe/domain'
import { sha256OfFile } from '@floe/host/regular-file'
import type { ConsoleClient } from '../console/client'

/** A package in a file of the caller's. */
export type PackageFile = { path: string; is: HostPackage }

const FIELDS = ['Package', 'Version', 'Architecture', 'Floe-Distribution']

/**
 * What the packages are that a person named: files, or directories that hold them. Of a directory that holds several versions the
 * person has to choose. Throws `package.not_found`, `package.unreadable`, `package.not_floe` or `package.incomplete`.
 */
export async function readPackageFiles(named: readonly string[]): Promise<PackageFile[]> {
  const paths = named.flatMap(filesIn)
  const [first] = named
  if (paths.length === 0)
    throw fault('package.not_found', `"${first}" holds no package`, {
      detail: 'The names of packages end with ".deb".',
      hint: 'Build them on a machine like the host: ./floe engine package --output DIRECTORY',
    })
  const files: PackageFile[] = []
  for (const path of paths) files.push({ path, is: await readPackage(path) })
  const apart = whyNotTogether(files.map(({ is }) => is))
  if (apart) throw new FaultError(apart)
  return files
}

function filesIn(path: string): string[] {
  const seen = statSync(path, { throwIfNoEntry: false })
  if (!seen) throw fault('package.not_found', `there is no "${path}"`)
  if (!seen.isDirectory()) return [path]
  return readdirSync(path)
    .filter((name) => name.endsWith('.deb'))
    .sort()
    .map((name) => join(path, name))
}

async function readPackage(path: string): Promise<HostPackage> {
  const format = FIELDS.map((name) => `\${${name}}\n`).join('')
  const { status, stdout, stderr, error } = spawnSync(
    'dpkg-deb',
    ['--show', `--showformat=${format}`, '--', path],
    { encoding: 'utf8', env: { ...process.env, LC_ALL: 'C.UTF-8' } },
  )
  if (error)
    throw fault('package.no_dpkg', 'packages cannot be read here', {
      detail: `dpkg-deb does not start: ${(error as NodeJS.ErrnoException).code}.`,
      hint: 'Run it on Debian or Ubuntu.',
    })
  if (status !== 0)
    throw fault('package.unreadable', `"${path}" is not a package that dpkg reads`, { detail: stderr.trim() })
  const [name, version, architecture, distribution] = stdout.split('\n')
  const read = HostPackage.safeParse({
    ...{ name, version, architecture, distribution },
    sizeBytes: statSync(path).size,
    digest: await sha256OfFile(path),
  })
  if (read.success) return read.data
  throw fault('package.not_floe', `"${path}" is no package of Floe’s for a host`, {
    detail: distribution
      ? `It is "${name}" ${version} for ${distribution} on ${architecture}, with ${formatBytes(statSync(path).size)}.`
      : `"${name}" does not name the distribution that it was built on, so an agent would refuse it.`,
    hint: 'Give what "./floe engine package" of this version printed.',
  })
}

/** Gives the packages to the console, piece by piece. */
export async function storePackages(
  client: ConsoleClient,
  files: readonly PackageFile[],
  tell: (text: string) => void,
): Promise<void> {
  const piece = Buffer.alloc(PACKAGE_PIECE_BYTES)
  for (const { path, is } of files) {
    tell(`${is.name} ${is.version}: ${formatBytes(is.sizeBytes)}`)
    const file = openSync(path, 'r')
    try {
      for (let number = 0; number * PACKAGE_PIECE_BYTES < is.sizeBytes; number++) {
        const length = readSync(file, piece, 0, piece.length, number * PACKAGE_PIECE_BYTES)
        const data = piece.subarray(0, length).toString('base64')
        await client.trpc.host.storePackagePiece.mutate({ digest: is.digest, number, data })
      }
    } finally {
      closeSync(file)
    }
  }
}
