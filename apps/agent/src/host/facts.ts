import { readFileSync } from 'node:fs'
import { arch, availableParallelism, freemem, hostname, loadavg, release, totalmem, uptime } from 'node:os'
import type { EngineBuild, HostFacts, HostPackages } from '@floe/domain'
import { readDisks } from './disks'
import type { HostUse } from './host-use'

/** What the host is and has, now. `paths` are directories whose file systems matter, that of the instances first. */
export function readHostFacts(o: {
  supervision: 'systemd' | 'detached'
  ports: { from: number; to: number; used: number }
  paths: readonly string[]
  separateUsers: boolean
  engineBuild: EngineBuild | null
  packages: HostPackages | null
  use: HostUse | null
}): HostFacts {
  return {
    hostName: hostname(),
    operatingSystem: operatingSystem(),
    kernel: release(),
    architecture: arch() === 'x64' ? 'x86_64' : arch() === 'arm64' ? 'aarch64' : arch(),
    cpus: availableParallelism(),
    cpuBusy: o.use?.cpuBusy ?? null,
    ioWait: o.use?.ioWait ?? null,
    memoryBytes: totalmem(),
    memoryAvailableBytes: availableMemory(),
    loadAverage1: loadavg()[0] ?? 0,
    uptimeSeconds: uptime(),
    supervision: o.supervision,
    instancePorts: o.ports,
    disks: readDisks(o.paths, o.use),
    separateUsers: o.separateUsers,
    ...(o.engineBuild === null ? {} : { engineBuild: o.engineBuild }),
    ...(o.packages === null ? {} : { packages: o.packages }),
  }
}

function operatingSystem(): string {
  try {
    const text = readFileSync('/etc/os-release', 'utf8')
    return /^PRETTY_NAME="?([^"\n]*)"?$/m.exec(text)?.[1] ?? 'Linux'
  } catch {
    return 'Linux'
  }
}

/** Memory that can be had without swapping; free memory alone leaves out the page cache. */
function availableMemory(): number {
  try {
    const kB = /^MemAvailable:\s+(\d+) kB$/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1]
    return kB ? Number(kB) * 1024 : freemem()
  } catch {
    return freemem()
  }
}
