import { createHash } from 'node:crypto'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { cacheDirectory, checkoutDirectory } from '../installation/home'
import { runInCheckout, type SuiteContext } from './suite'

/** What the tests of the Terraform modules are told; what is missing they leave out and say so. */
export type InfraTools = {
  /** terraform, or OpenTofu; null where there is none and none could be built. */
  program: string | null
  /** Directories of providers, laid out as Terraform's own mirrors are. */
  mirrors: string[]
  /** The linter; null where it is not built, which takes minutes. */
  tflint: string | null
}

/** Ephemeral variables and write-only arguments are from here on, of either. */
const LEAST = [1, 11]
/** Building takes three minutes on two cores; a proxy that does not answer must not cost an hour. */
const BUILD_SECONDS_MAX = 900

/** Whether a program tells a version that the modules can be used with. */
export function isRecent(versionLine: string): boolean {
  const match = /^(?:Terraform|OpenTofu) v(\d+)\.(\d+)\./.exec(versionLine)
  if (!match) return false
  const [major, minor] = [Number(match[1]), Number(match[2])]
  return major > (LEAST[0] as number) || (major === LEAST[0] && minor >= (LEAST[1] as number))
}

async function installed(context: SuiteContext): Promise<string | null> {
  for (const name of ['terraform', 'tofu']) {
    const { stdout, status } = await runInCheckout(context, name, ['-version'])
    if (status === 0 && isRecent(stdout)) return name
  }
  return null
}

/**
 * A program of infra/tools: from the cache, else built where `build` says so. What it is built from names its place in the
 * cache, so another version is another file.
 */
async function cached(
  context: SuiteContext,
  name: string,
  { file = name, build }: { file?: string; build: boolean },
): Promise<{ directory: string; program: string } | null> {
  const tools = join(checkoutDirectory(), 'infra/tools')
  const hash = createHash('sha256')
  for (const part of ['build', `${name}/go.mod`, `${name}/go.sum`, `${name}/tools.go`])
    hash.update(readFileSync(join(tools, part)))
  const directory = join(cacheDirectory(), 'tools', `${name}-${hash.digest('hex').slice(0, 12)}`)
  const program = join(directory, file)
  if (existsSync(program)) return { directory, program }
  if (!build) return null
  context.say(`building ${name} from Go modules, once (minutes)`)
  // Debian's own does for fetching a newer one
  if ((await runInCheckout(context, 'go', ['version'])).status !== 0) await context.packages('golang-go')
  const { status, tail } = await runInCheckout(context, 'timeout', [
    ...[String(BUILD_SECONDS_MAX), join(tools, 'build'), name, program],
  ])
  if (status === 0) return { directory, program }
  context.say(`${name} could not be built: ${tail.at(-1) ?? `status ${status}`}`)
  return null
}

/** Where providers lie on this machine already: where Terraform itself looks, and beside other software. */
function installedMirrors(): string[] {
  const named = process.env.FLOE_TEST_TERRAFORM_PLUGINS?.split(':') ?? []
  const usual = [
    join(process.env.HOME ?? '/', '.terraform.d/plugins'),
    ...['/usr/local/share/terraform/plugins', '/usr/share/terraform/plugins'],
    ...globSync('/opt/*/registry.terraform.io').map((path) => join(path, '..')),
  ]
  return [...named, ...usual].filter((path) => path !== '' && existsSync(path))
}

/** Finds what the tests of the modules need, and builds what this machine lacks. */
export async function infraTools(context: SuiteContext): Promise<InfraTools> {
  const long = process.env.FLOE_TEST_LONG === '1'
  const program =
    (await installed(context)) ?? (await cached(context, 'tofu', { build: true }))?.program ?? null
  const mirrors = installedMirrors()
  const libvirt = await cached(context, 'terraform-provider-libvirt', {
    file: 'registry.terraform.io/dmacvicar/libvirt/0.8.3/linux_amd64/terraform-provider-libvirt_v0.8.3',
    build: program !== null,
  })
  if (libvirt) mirrors.push(libvirt.directory)
  const tflint = (await cached(context, 'tflint', { build: long }))?.program ?? null
  if (program === null) context.say('left out: the Terraform modules, without terraform or OpenTofu')
  if (tflint === null) context.say('left out: tflint, which --long builds once')
  return { program, mirrors, tflint }
}
