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
  /** The linter; null where it is not installed. */
  tflint: string | null
  /** Directory of a kernel and its first file system, for a guest of QEMU; null where none is asked for, or can be made. */
  guest: string | null
  /** The proxy before a console; null where it is neither installed nor to be had as a Debian package. */
  caddy: string | null
}

/** Ephemeral variables and write-only arguments are from here on, of either. */
const LEAST = [1, 11]
/** Where Terraform looks for that provider in a mirror. */
const LIBVIRT = 'registry.terraform.io/dmacvicar/libvirt/0.8.3/linux_amd64/terraform-provider-libvirt_v0.8.3'
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
    // a configuration that somebody named is not ours, and may not be there
    const env = { TF_CLI_CONFIG_FILE: undefined }
    const { stdout, status } = await runInCheckout(context, name, ['-version'], { env })
    if (status === 0 && isRecent(stdout)) return name
  }
  return null
}

/** A program of infra/tools in the cache: what it is built from names its place, so another version is another file. */
function placeOf(name: string, file = name): { directory: string; program: string } {
  const hash = createHash('sha256')
  for (const part of ['build', `${name}/go.mod`, `${name}/go.sum`, `${name}/tools.go`])
    hash.update(readFileSync(join(checkoutDirectory(), 'infra/tools', part)))
  const directory = join(cacheDirectory(), 'tools', `${name}-${hash.digest('hex').slice(0, 12)}`)
  return { directory, program: join(directory, file) }
}

/** Builds a program of infra/tools; answers whether it is there now. */
async function build(context: SuiteContext, name: string, program: string): Promise<boolean> {
  context.say(`building ${name} from Go modules, once (minutes)`)
  // Debian's own does for fetching a newer one
  if ((await runInCheckout(context, 'go', ['version'])).status !== 0) await context.packages('golang-go')
  const { status, tail } = await runInCheckout(context, 'timeout', [
    ...[String(BUILD_SECONDS_MAX), join(checkoutDirectory(), 'infra/tools/build'), name, program],
  ])
  if (status !== 0) context.say(`${name} could not be built: ${tail.at(-1) ?? `status ${status}`}`)
  return status === 0
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

/** What a guest consists of, and QEMU to run it. */
async function guestOf(context: SuiteContext): Promise<string | null> {
  const names = ['qemu-system-x86', 'busybox-static', 'mdadm', 'lvm2', 'xfsprogs', 'e2fsprogs', 'mmdebstrap']
  if (process.arch !== 'x64' || !(await context.packages(...names))) return null
  const directory = join(cacheDirectory(), 'tools', 'guest')
  const build = join(checkoutDirectory(), 'apps/cli/infra/guest/build-guest')
  // its programs are this checkout's and this machine's own, so it is made each time: some seconds
  const { status, tail } = await runInCheckout(context, 'timeout', ['300', build, directory])
  if (status === 0) return directory
  context.say(`a guest could not be made: ${tail.at(-1) ?? `status ${status}`}`)
  return null
}

/** Caddy is unpacked, not installed: its package would start a web server on a machine that only tests. */
async function caddyOf(context: SuiteContext): Promise<string | null> {
  if ((await runInCheckout(context, 'caddy', ['version'])).status === 0) return 'caddy'
  const directory = join(cacheDirectory(), 'tools', 'caddy')
  const program = join(directory, 'usr/bin/caddy')
  if (existsSync(program)) return program
  const unpack = `mkdir -p "$1" && cd "$1" && apt-get -q download caddy && dpkg -x caddy_*.deb unpacked &&
    mv unpacked/usr . && rm -r unpacked caddy_*.deb`
  await runInCheckout(context, 'sh', ['-c', unpack, 'sh', directory])
  return existsSync(program) ? program : null
}

/** Finds what the tests of the modules need, and builds what this machine lacks: one program a run, more with --long. */
export async function infraTools(context: SuiteContext): Promise<InfraTools> {
  const tofu = placeOf('tofu')
  let program = (await installed(context)) ?? (existsSync(tofu.program) ? tofu.program : null)
  const long = process.env.FLOE_TEST_LONG === '1'
  let builds = long ? 2 : 1
  if (program === null && builds-- > 0 && (await build(context, 'tofu', tofu.program))) program = tofu.program
  const mirrors = installedMirrors()
  const libvirt = placeOf('terraform-provider-libvirt', LIBVIRT)
  if (
    existsSync(libvirt.program) ||
    (program !== null && builds > 0 && (await build(context, 'terraform-provider-libvirt', libvirt.program)))
  )
    mirrors.push(libvirt.directory)
  else context.say('left out: the modules of libvirt, whose provider the next run builds')
  const tflint = (await runInCheckout(context, 'tflint', ['--version'])).status === 0 ? 'tflint' : null
  if (program === null) context.say('left out: the Terraform modules, without terraform or OpenTofu')
  if (tflint === null) context.say('left out: tflint, which is not installed')
  const caddy = await caddyOf(context)
  if (caddy === null) context.say('left out: the console behind its proxy, without Caddy')
  const guest = long ? await guestOf(context) : null
  if (guest === null)
    context.say('left out: guests with NVMe disks and with limits on cgroup v2, which --long starts')
  return { program, mirrors, tflint, caddy, guest }
}
