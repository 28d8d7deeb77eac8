import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { firstProcess } from '@floe/host/process-facts'
import { makeScratchDirectory } from './scratch-directory'
import { waitUntil } from './wait'

/**
 * The first process of new process, mount and control group namespaces. It sees the machine's files through an overlay,
 * so whatever it writes, creates or cleans away stays inside, except in the given directory. The unit path holds empty
 * targets only, and the administrator's own directory of units is empty: none of the machine's own units may start here and
 * touch the kernel or the hardware. Transient units are found again when systemd reads its files anew.
 */
const boot = `set -eu
mount --make-rprivate /
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
root=$1/root
mount -t proc proc "$root/proc"
# without its control groups, which systemd mounts as this namespace sees them
mount -t sysfs sysfs "$root/sys"
mount --rbind /dev "$root/dev"
# its engines' shared memory is gone with it
mount -t tmpfs tmpfs "$root/dev/shm"
mount -t tmpfs tmpfs "$root/run"
mount --rbind "$2" "$root$2"
mkdir -p "$root/etc/systemd/system"
mount -t tmpfs tmpfs "$root/etc/systemd/system"
mkdir -p "$root/run/units" "$root/run/systemd" "$root/run/lock"
for target in sysinit basic shutdown floe-test; do
  printf '[Unit]\\nDescription=%s\\nDefaultDependencies=no\\n' "$target" > "$root/run/units/$target.target"
done
export container=floe-test SYSTEMD_UNIT_PATH=/run/units:/run/systemd/transient:/run/systemd/system:/etc/systemd/system SYSTEMD_LOG_TARGET=console
exec chroot "$root" /lib/systemd/systemd --system --unit=floe-test.target
`

/**
 * Enters a control group of its own in each hierarchy, so that what systemd makes of groups lies below it and can be
 * removed, and then the namespaces.
 */
const enter = `set -eu
for hierarchy in /sys/fs/cgroup /sys/fs/cgroup/*; do
  [ -w "$hierarchy/cgroup.procs" ] || continue
  mkdir "$hierarchy/$1"
  # a cpuset takes no process before it has processors
  for file in cpuset.cpus cpuset.mems; do
    [ ! -f "$hierarchy/$file" ] || cat "$hierarchy/$file" > "$hierarchy/$1/$file"
  done
  echo $$ > "$hierarchy/$1/cgroup.procs"
done
shift
exec unshare --mount --pid --cgroup --fork --kill-child=SIGKILL "$@"
`

/** A systemd of the test's own, as the first process of a namespace. */
export class PrivateSystemd {
  readonly pid: number
  readonly #end: () => Promise<void>

  private constructor(pid: number, end: () => Promise<void>) {
    this.pid = pid
    this.#end = end
  }

  /** Why there can be none here, or null. */
  static reasonAgainst(): string | null {
    if (process.getuid?.() !== 0) return 'needs root'
    for (const file of ['/lib/systemd/systemd', '/usr/bin/nsenter', '/usr/bin/unshare'])
      if (!existsSync(file)) return `needs ${file}`
    if (firstProcess() === 'systemd') return 'all tests run with this machine’s systemd'
    if (!readFileSync('/proc/filesystems', 'utf8').includes('overlay')) return 'needs overlayfs'
    return null
  }

  /** @param directory is the one place where what is written inside is seen outside, and the reverse. */
  static async start(directory: string): Promise<PrivateSystemd> {
    const scratch = makeScratchDirectory('floe-systemd')
    const script = join(scratch.path, 'boot')
    const layers = join(scratch.path, 'layers')
    mkdirSync(layers)
    writeFileSync(script, boot)
    const group = basename(scratch.path)
    const child = spawn('sh', ['-c', enter, 'sh', group, 'sh', script, layers, directory], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text
      })
    const end = async () => {
      child.kill('SIGKILL')
      await waitUntil('the private systemd ends', () => child.exitCode !== null || child.signalCode !== null)
      await waitUntil('its control groups are empty', () => removeGroups(group))
      scratch.remove()
    }
    try {
      const pid = await waitUntil('the private systemd runs', async () => {
        if (child.exitCode !== null) throw new Error(`the private systemd ended: ${output}`)
        const first = childOf(child.pid)
        if (!first || readFileSync(`/proc/${first}/comm`, 'utf8').trim() !== 'systemd') return null
        const systemd = new PrivateSystemd(first, end)
        return (await systemd.run('systemctl', 'is-system-running')).trim() === 'running' ? first : null
      })
      return new PrivateSystemd(pid, end)
    } catch (error) {
      await end()
      throw error
    }
  }

  /** The command line that runs a command inside; it dies with the process that was started by it. */
  within(command: readonly string[]): string[] {
    const enter = [
      'nsenter',
      '--target',
      String(this.pid),
      '--mount',
      '--pid',
      '--cgroup',
      '--root',
      '--wd=/',
    ]
    return [...enter, 'setpriv', '--pdeathsig', 'KILL', ...command]
  }

  /** Runs a command inside and returns what it prints, whatever its status. */
  run(...command: string[]): Promise<string> {
    const [file = '', ...args] = this.within(command)
    return new Promise((resolve, reject) => {
      const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'] })
      let output = ''
      for (const stream of [child.stdout, child.stderr])
        stream.setEncoding('utf8').on('data', (text: string) => {
          output += text
        })
      child.once('error', reject)
      child.once('close', () => resolve(output))
    })
  }

  /** Ends it with every process that was started in it. */
  end(): Promise<void> {
    return this.#end()
  }
}

/** Removes a control group with all below it, in every hierarchy; false while a process is left in one. */
function removeGroups(name: string): boolean {
  const root = '/sys/fs/cgroup'
  const groups = [root, ...readdirSync(root).map((hierarchy) => join(root, hierarchy))]
    .map((hierarchy) => join(hierarchy, name))
    .filter((group) => existsSync(group))
  const below = (group: string): string[] => [
    ...readdirSync(group, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .flatMap((entry) => below(join(group, entry.name))),
    group,
  ]
  try {
    for (const group of groups.flatMap(below)) rmdirSync(group)
    return true
  } catch {
    return false
  }
}

function childOf(pid: number | undefined): number | null {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')[0]) || null
  } catch {
    return null
  }
}

/**
 * From which uid on a machine of the test's own gives users to instances, in what it has at /var/lib/floe. It does not see which
 * are taken outside, where its processes are seen: with the same uid they would be those of an instance there, whose stop and
 * fence end them.
 */
export function beginUsersAt(state: string, uid: number): void {
  mkdirSync(join(state, 'users'), { recursive: true })
  writeFileSync(join(state, 'users/next'), `${uid}\n`)
}

/**
 * Copies /etc of this machine for a private systemd, without its units; answers the directory of units. A file that another
 * program makes and removes meanwhile, as useradd does its locks, fails one copy and not the next.
 */
export function copyEtc(directory: string): string {
  const etc = join(directory, 'etc')
  for (let left = 50; ; left--) {
    rmSync(etc, { recursive: true, force: true })
    try {
      execFileSync('cp', ['-a', '/etc', etc], { stdio: ['ignore', 'ignore', 'pipe'] })
      break
    } catch (error) {
      if (left === 0) throw error
    }
  }
  const units = join(etc, 'systemd/system')
  rmSync(units, { recursive: true, force: true })
  mkdirSync(units, { recursive: true })
  return units
}
