import { z } from 'zod'
import { EngineBuild } from './engine-build'
import type { Fault } from './fault'
import { type HostFacts, PACKAGES_ACCEPTED } from './host'

/** A package is brought in pieces of so many bytes, numbered from 0; each but the last is as long. */
export const PACKAGE_PIECE_BYTES = 512 * 1024
/** The largest package that is taken. The engine's and the agent's have some tens of MB. */
export const PACKAGE_BYTES_MAX = 512 * 1024 * 1024
/** The agent, the engine, and the build of the engine that it asks for. */
export const PACKAGES_MAX = 3

const AGENT = 'floe-agent'
const ENGINE = 'floe-engine'
const BUILD = /^floe-engine-(.+)$/

export const PackageDigest = z.string().regex(/^[0-9a-f]{64}$/, 'must be a sha256 in hexadecimal')

/** A Debian package of Floe's, by what it says of itself and by the digest of its bytes. */
export const HostPackage = z.object({
  name: z.string().regex(/^floe-(agent|engine(-[a-z0-9][a-z0-9.+-]{0,90})?)$/, 'is no package of a host'),
  version: z.string().regex(/^[0-9][A-Za-z0-9.+~-]{0,99}$/, 'is no version of a package of Floe’s'),
  architecture: z.string().regex(/^[a-z0-9]{1,20}$/),
  /** Of which distribution the machine was that it was built on; its field Floe-Distribution. */
  distribution: z.string().regex(/^[a-z0-9][a-z0-9.-]{0,49}$/),
  sizeBytes: z.number().int().min(1).max(PACKAGE_BYTES_MAX),
  digest: PackageDigest,
})
export type HostPackage = z.infer<typeof HostPackage>

/** Packages that are brought together: see whyNotTogether. */
export const HostPackageList = z.array(HostPackage).min(1).max(PACKAGES_MAX)

/** What becomes of one package of a host. */
export const PackageChange = z.object({
  name: z.string(),
  /** The installed version; null where it is not installed. */
  from: z.string().nullable(),
  to: z.string(),
  change: z.enum(['install', 'upgrade', 'downgrade', 'none']),
})
export type PackageChange = z.infer<typeof PackageChange>

/** How far the packages of an upgrade are: brought to the host and installed there before any instance is moved. */
export const PackagesInstalled = z.object({
  /** When the agent that they brought had compared the installed versions, ms since the epoch. */
  at: z.number(),
})
export type PackagesInstalled = z.infer<typeof PackagesInstalled>

/** The build of the engine among packages; null where they bring none. */
export function buildAmong(packages: readonly Pick<HostPackage, 'name'>[]): EngineBuild | null {
  const build = packages.map(({ name }) => BUILD.exec(name)?.[1]).find((of) => of !== undefined)
  return EngineBuild.safeParse(build).data ?? null
}

/**
 * Why packages cannot be installed together: the agent's has to be among them, because it is started again by it and takes the
 * newest engine then; the engine's comes with the build that it asks for.
 */
export function whyNotTogether(packages: readonly Pick<HostPackage, 'name'>[]): Fault | null {
  const names = packages.map(({ name }) => name)
  const refused = (detail: string): Fault => ({
    code: 'package.incomplete',
    message: 'these packages cannot be installed together',
    detail,
    hint: 'Give all that "./floe engine package" printed, and nothing else.',
  })
  if (new Set(names).size !== names.length) return refused('A package is there twice.')
  if (!names.includes(AGENT)) return refused(`"${AGENT}" is not among them.`)
  if (names.filter((name) => BUILD.test(name)).length > 1)
    return refused('There are two builds of the engine.')
  if (names.includes(ENGINE) !== (buildAmong(packages) !== null))
    return refused(`"${ENGINE}" and the build that it asks for belong together.`)
  return null
}

/**
 * Which packages of a host would go from which version to which, and why they cannot. `capabilities`: what its agent says that
 * it can do.
 */
export function planPackages(
  host: { name: string; facts: HostFacts | null; capabilities: readonly string[] | null },
  packages: readonly HostPackage[],
  downgrade: boolean,
): { changes: PackageChange[]; blocker: Fault | null } {
  const installed = host.facts?.packages?.installed ?? []
  const changes = packages.map(({ name, version }): PackageChange => {
    const from = installed.find((p) => p.name === name)?.version ?? null
    const order = from === null ? null : compareVersions(version, from)
    return {
      ...{ name, from, to: version },
      change: order === null ? 'install' : order > 0 ? 'upgrade' : order < 0 ? 'downgrade' : 'none',
    }
  })
  const blocker = whyNotTogether(packages) ?? whyNotHere(host, packages) ?? whyNotDown(changes, downgrade)
  return { changes, blocker }
}

function whyNotHere(
  host: { name: string; facts: HostFacts | null; capabilities: readonly string[] | null },
  packages: readonly HostPackage[],
): Fault | null {
  if (!host.capabilities?.includes('task.install-packages'))
    return {
      code: 'host.older_agent',
      message: `the agent of host "${host.name}" takes no packages from a console`,
      hint: 'Upgrade it by hand this time: docs/guide/upgrading.md.',
    }
  const here = host.facts?.packages
  if (!here) return notPackaged(host.name)
  if (host.facts?.supervision !== 'systemd') return noSystemd(host.name)
  if (!here.accepted) return notAccepted(host.name)
  for (const { name, architecture, distribution } of packages)
    if (architecture !== here.architecture || distribution !== here.distribution)
      return {
        code: 'package.other_machine',
        message: `package "${name}" is for another machine than host "${host.name}"`,
        detail: `It is for ${distribution} on ${architecture}; the host is ${here.distribution} on ${here.architecture}.`,
        hint: 'Build the packages on a machine like the host: "./floe engine package".',
      }
  return null
}

/** Said of a host whose Floe is a checkout or an archive. */
export const notPackaged = (name: string): Fault => ({
  code: 'host.not_packaged',
  message: `host "${name}" was not installed from packages`,
  detail: 'Its agent runs from a checkout, or from an archive of Floe.',
  hint: 'Upgrade it there: "git pull", then "./floe up" on the console’s machine and "./floe agent start" on any other host.',
})

/** Said of a host on which nothing could install packages while its agent is stopped. */
export const noSystemd = (name: string): Fault => ({
  code: 'host.no_systemd',
  message: `host "${name}" has no systemd that could install packages`,
  detail: 'The packages stop the agent, so their installation has to run in a unit of its own.',
  hint: 'Run as root on the host, in the directory of the packages: apt-get install ./floe-*.deb',
})

/** Said of a host whose root has not let the console install programs there. */
export const notAccepted = (name: string): Fault => ({
  code: 'host.packages_not_accepted',
  message: `host "${name}" takes no packages from its console`,
  detail: 'What a package brings runs as root there, so root of the host has to allow it first.',
  hint: `Run as root on the host: install -D -m 644 /dev/null ${PACKAGES_ACCEPTED}`,
})

function whyNotDown(changes: readonly PackageChange[], downgrade: boolean): Fault | null {
  const down = changes.find(({ change }) => change === 'downgrade')
  if (!down || downgrade) return null
  return {
    code: 'package.downgrade',
    message: `package "${down.name}" would go back to an earlier version`,
    detail: `Installed is ${down.from}, brought would be ${down.to}.`,
    hint: 'An earlier agent may not understand what the present one has stored. If that is wanted, add --downgrade.',
  }
}

/** Compares two Debian versions as dpkg does: below 0 where the first one is earlier. */
export function compareVersions(a: string, b: string): number {
  const [one, other] = [a, b].map(partsOf) as [string[], string[]]
  for (let i = 0; i < 3; i++) {
    const order = i === 0 ? Number(one[0]) - Number(other[0]) : comparePart(one[i] ?? '', other[i] ?? '')
    if (order !== 0) return Math.sign(order)
  }
  return 0
}

/** Epoch, upstream version and revision. */
function partsOf(version: string): string[] {
  const [, epoch = '0', rest = ''] = /^(?:(\d+):)?(.*)$/.exec(version) ?? []
  const dash = rest.lastIndexOf('-')
  return dash < 0 ? [epoch, rest, '0'] : [epoch, rest.slice(0, dash), rest.slice(dash + 1)]
}

/** A tilde comes before the end, the end before letters, letters before everything else. */
const rank = (c: string | undefined) =>
  c === '~'
    ? -1
    : c === undefined || /\d/.test(c)
      ? 0
      : /[A-Za-z]/.test(c)
        ? c.charCodeAt(0)
        : c.charCodeAt(0) + 256

function comparePart(a: string, b: string): number {
  let [i, j] = [0, 0]
  while (i < a.length || j < b.length) {
    while ((i < a.length && !/\d/.test(a[i] as string)) || (j < b.length && !/\d/.test(b[j] as string))) {
      const order = rank(a[i]) - rank(b[j])
      if (order !== 0) return order
      i++
      j++
    }
    const [one, other] = [/^\d*/.exec(a.slice(i))?.[0] ?? '', /^\d*/.exec(b.slice(j))?.[0] ?? '']
    const order = BigInt(one || '0') - BigInt(other || '0')
    if (order !== 0n) return order > 0n ? 1 : -1
    i += one.length
    j += other.length
  }
  return 0
}
