import { z } from 'zod'

/** `fault`: it gives up durability. `unknown`: it could not be read, or nothing is known of it. */
export const HostCheckSeverity = z.enum(['fault', 'advice', 'unknown', 'ok'])
export type HostCheckSeverity = z.infer<typeof HostCheckSeverity>

const text = z.string().max(1_000)

/** One recommendation as the check judged it; `actual` null: could not be read. */
export const HostCheckLine = z.object({
  name: text.min(1),
  group: z.enum(['disk', 'memory', 'limits', 'clock']),
  actual: text.nullable(),
  wanted: text,
  severity: HostCheckSeverity,
  why: text,
  /** What root runs to change it; null where nothing has to, or no command can be given safely. */
  command: text.nullable(),
})
export type HostCheckLine = z.infer<typeof HostCheckLine>

/** A file system and the disk below it. What the kernel does not report is null. */
export const HostCheckDisk = z.object({
  mount: z.string().max(2_000),
  device: z.string().max(2_000),
  /** Its name below /sys/block. */
  disk: text.nullable(),
  fileSystem: z.string().max(2_000),
  options: z.string().max(2_000),
  sizeBytes: z.number().nonnegative().nullable(),
  freeBytes: z.number().nonnegative().nullable(),
  nvme: z.boolean().nullable(),
  rotational: z.boolean().nullable(),
  writeCache: text.nullable(),
  scheduler: text.nullable(),
})

/** Of what the program prints: grows when it means something else than before. */
export const HOST_CHECK_VERSION = 1

/** What infra/host-check/floe-host-check prints of a machine as JSON. */
export const HostCheck = z.object({
  version: z.literal(HOST_CHECK_VERSION),
  host: text.nullable(),
  kernel: text.nullable(),
  cpus: z.number().int().positive().nullable(),
  memoryBytes: z.number().positive().nullable(),
  /** Settings of the kernel are then those of the machine around it. */
  container: z.boolean(),
  disks: z.array(HostCheckDisk).max(64),
  lines: z.array(HostCheckLine).max(500),
})
export type HostCheck = z.infer<typeof HostCheck>

/**
 * Whether it is printable ASCII, as the program writes it: nothing that a terminal or a page takes for more than text. The host
 * may be hostile, and people paste its commands.
 */
export const isPlainText = (check: HostCheck): boolean =>
  stringsIn(check).every((s) => /^[\x20-\x7e]*$/.test(s))

const stringsIn = (value: unknown): string[] =>
  typeof value === 'string'
    ? [value]
    : typeof value === 'object' && value !== null
      ? Object.values(value).flatMap(stringsIn)
      : []

/** How many lines there are of each severity. */
export function hostCheckTally(
  lines: readonly Pick<HostCheckLine, 'severity'>[],
): Record<HostCheckSeverity, number> {
  const tally = { fault: 0, advice: 0, unknown: 0, ok: 0 }
  for (const { severity } of lines) tally[severity]++
  return tally
}

/** The worst first; lines of one severity stay in their order. */
export const sortedHostCheck = <L extends Pick<HostCheckLine, 'severity'>>(lines: readonly L[]): L[] =>
  HostCheckSeverity.options.flatMap((severity) => lines.filter((line) => line.severity === severity))

/** "1 fault, 3 to improve, 2 unknown, 15 as wanted", without what there is none of. */
export function hostCheckSummary(lines: readonly Pick<HostCheckLine, 'severity'>[]): string {
  const { fault, advice, unknown, ok } = hostCheckTally(lines)
  const parts = [
    fault > 0 && `${fault} ${fault === 1 ? 'fault' : 'faults'}`,
    advice > 0 && `${advice} to improve`,
    unknown > 0 && `${unknown} unknown`,
    ok > 0 && `${ok} as wanted`,
  ].filter((part) => part !== false)
  return parts.join(', ') || 'nothing was checked'
}

/** A check is said to be old after a day: mounts and settings change with upgrades and restarts. */
export const HOST_CHECK_OLD_MS = 24 * 3_600_000

/** A host is checked though nobody asks so long after the last check: before that one is said to be old. */
export const HOST_CHECK_EVERY_MS = HOST_CHECK_OLD_MS - 3_600_000
