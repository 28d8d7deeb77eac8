import { createHash } from 'node:crypto'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { cacheDirectory, checkoutDirectory } from '../installation/home'
import { runInCheckout, type SuiteContext } from './suite'

/** What the tests of the Terraform modules are told; what is missing they leave out and say so. */
export type InfraTools = {
  /** terraform, or OpenTofu; null where there is none and none could be built. */
  program: string | null
  /** Directories of providers, laid out as Terraform's own mirrors are. */
  mirrors: string[]
  /** The linter, of the version that infra/tools pins; null where it could not be built. */
  tflint: string | null
  /** The Python that has checkov, which looks for insecure resources; null where that could not be installed. */
  checkov: string | null
  /** Directory of a kernel and its first file system, for a guest of QEMU; null where none is asked for, or can be made. */
  guest: string | null
  /** The proxy before a console; null where it is neither installed nor to be had as a Debian package. */
  caddy: string | null
}

/** Ephemeral variables and write-only arguments are from here on, of either. */
const LEAST = [1, 11]
/** Where Terraform looks for a provider in a mirror. */
const inMirror = (source: string, version: string) =>
  `registry.terraform.io/${source}/${version}/linux_amd64/terraform-provider-${basename(source)}_v${version}`
/** Building takes up to four minutes on two cores; a proxy that does not answer must not cost an hour. */
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

/** Where in the cache something of infra/tools lies: what it is made from names its place, so another version lies elsewhere. */
function directoryOf(name: string, parts: readonly string[]): string {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(readFileSync(join(checkoutDirectory(), 'infra/tools', part)))
  return join(cacheDirectory(), 'tools', `${name}-${hash.digest('hex').slice(0, 12)}`)
}

function placeOf(name: string, file = name): { directory: string; program: string } {
  const parts = ['build', `${name}/go.mod`, `${name}/go.sum`, `${name}/tools.go`]
  const directory = directoryOf(name, parts)
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

/** Installs checkov, once: two minutes, most of them downloads. */
async function checkovOf(context: SuiteContext): Promise<string | null> {
  const parts = ['checkov/install', 'checkov/requirements.txt']
  const directory = directoryOf('checkov', parts)
  const python = join(directory, 'bin/python')
  if (existsSync(python)) return python
  context.say('installing checkov from its Python packages, once (minutes)')
  const venv = await runInCheckout(context, 'python3', ['-c', 'import ensurepip, venv'])
  if (venv.status !== 0) await context.packages('python3-venv')
  const { status, tail } = await runInCheckout(context, 'timeout', [
    ...[String(BUILD_SECONDS_MAX), join(checkoutDirectory(), 'infra/tools', 'checkov/install'), directory],
  ])
  if (status === 0) return python
  context.say(`checkov could not be installed: ${tail.at(-1) ?? `status ${status}`}`)
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

/** Providers that can be built, by the name of their folder in infra/tools; those that take minutes only with --long. */
const providers = [
  { name: 'terraform-provider-libvirt', file: inMirror('dmacvicar/libvirt', '0.8.3'), dear: false },
  { name: 'terraform-provider-alicloud', file: inMirror('aliyun/alicloud', '1.132.0'), dear: true },
]

/** Terraform and its providers, and the linter: two programs a run are built at most, with --long all. */
async function builtTools(context: SuiteContext, long: boolean) {
  let builds = long ? Number.POSITIVE_INFINITY : 2
  const have = async (name: string, program: string) =>
    existsSync(program) || (builds-- > 0 && (await build(context, name, program)))
  const tofu = placeOf('tofu')
  let program = await installed(context)
  if (program === null && (await have('tofu', tofu.program))) program = tofu.program
  const mirrors = installedMirrors()
  for (const { name, file, dear } of providers) {
    const place = placeOf(name, file)
    const wanted = program !== null && (!dear || long)
    if (existsSync(place.program) || (wanted && (await have(name, place.program))))
      mirrors.push(place.directory)
    else
      context.say(`left out: the modules that need ${name}, which ${dear ? '--long' : 'the next run'} builds`)
  }
  const tflint = placeOf('tflint')
  const linted = await have('tflint', tflint.program)
  if (program === null) context.say('left out: the Terraform modules, without terraform or OpenTofu')
  if (!linted) context.say('left out: tflint, which the next run builds')
  return { program, mirrors, tflint: linted ? tflint.program : null }
}

/** Finds what the tests of the modules need, and builds or installs what this machine lacks. */
export async function infraTools(context: SuiteContext): Promise<InfraTools> {
  const long = process.env.FLOE_TEST_LONG === '1'
  // one waits for downloads while the other compiles
  const [built, checkov] = await Promise.all([builtTools(context, long), checkovOf(context)])
  if (checkov === null)
    context.say('left out: the scan of the Terraform modules for insecure resources, without checkov')
  const caddy = await caddyOf(context)
  if (caddy === null) context.say('left out: the console behind its proxy, without Caddy')
  const guest = long ? await guestOf(context) : null
  if (guest === null)
    context.say('left out: guests with NVMe disks, limits on cgroup v2 and packages, which --long starts')
  return { ...built, checkov, caddy, guest }
}
