import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { fault, HostCheck } from '@floe/domain'
import { runCommand } from './run-command'

/** The one program that also cloud-init and people run; this room only starts it and reads what it says. */
const program = join(
  dirname(fileURLToPath(import.meta.url)),
  // bundled it lies beside
  import.meta.url.endsWith('/src/host/host-check.ts')
    ? '../../../../infra/host-check/floe-host-check'
    : 'floe-host-check',
)

/** It takes a fraction of a second, and 3 s more for each file system that does not answer. */
const CHECK_MS = 60_000
/** Status of a check that found a fault. */
const FAULT_FOUND = 3

/** Checks this machine, and the file systems of these directories. `root`: the tree of another one, for tests. */
export async function checkHost(o: {
  paths: readonly string[]
  signal?: AbortSignal
  root?: string
}): Promise<HostCheck> {
  const words = ['--json', ...(o.root ? ['--root', o.root] : []), ...o.paths.flatMap((p) => ['--path', p])]
  const { status, stdout, stderr } = await runCommand(program, words, {
    timeoutMs: CHECK_MS,
    signal: o.signal,
  })
  o.signal?.throwIfAborted()
  if (status !== 0 && status !== FAULT_FOUND)
    throw fault('host.check_failed', 'the machine could not be checked', {
      detail: stderr.trim().slice(0, 500) || `The check ended with status ${status ?? 'none'}.`,
      hint: 'Run "infra/host-check/floe-host-check" of the checkout on the host to see why.',
    })
  const check = HostCheck.safeParse(jsonOf(stdout))
  if (!check.success)
    throw fault('host.check_unreadable', 'the answer of the check of the machine could not be read', {
      detail:
        check.error.issues[0] && `${check.error.issues[0].path.join('.')}: ${check.error.issues[0].message}`,
      hint: 'Run "infra/host-check/floe-host-check --json" of the checkout on the host.',
    })
  return check.data
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
