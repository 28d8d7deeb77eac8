import { realpathSync } from 'node:fs'
import { basename } from 'node:path'
import { EngineBuild, type InstanceEngine } from '@floe/domain'
import { programFileOf } from '@floe/host/process-facts'

/** The build in a prefix; null where its directory has a name that no build has. */
export const buildOf = (prefix: string): EngineBuild | null =>
  EngineBuild.safeParse(basename(prefix)).data ?? null

/**
 * Of which build an instance's engine is. What its server runs is the kernel's word, and named only where it is one of the two
 * prefixes that root chose: the path of any other program is its user's.
 */
export function engineOf(
  prefix: string,
  installedPrefix: string,
  postmaster: { pid: number } | null,
): InstanceEngine | undefined {
  const build = buildOf(prefix)
  if (build === null) return undefined
  const runs = postmaster && prefixOf(postmaster.pid)
  const running = [prefix, installedPrefix].find((known) => runs !== null && runs === resolved(known))
  return {
    build,
    running: running === undefined ? null : buildOf(running),
    current: prefix === installedPrefix && (postmaster === null || running === installedPrefix),
  }
}

/** Whether a server was started from the engine in this prefix. */
export const runsFrom = (prefix: string, postmaster: { pid: number } | null): boolean =>
  postmaster !== null && prefixOf(postmaster.pid) === resolved(prefix)

const prefixOf = (pid: number): string | null =>
  /^(.*)\/bin\/postgres$/.exec(programFileOf(pid) ?? '')?.[1] ?? null

/** As the kernel names it; a prefix that is gone keeps its name. */
function resolved(prefix: string): string {
  try {
    return realpathSync(prefix)
  } catch {
    return prefix
  }
}
