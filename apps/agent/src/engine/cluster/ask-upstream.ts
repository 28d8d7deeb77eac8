import { join } from 'node:path'
import type { Upstream } from '@floe/agent-contract'
import { fault } from '@floe/domain'
import { runCommand } from '../../host/run-command'
import type { Instance } from '../instance'
import { upstreamConninfo } from './member-files'

const ASK_BOUND_MS = 30_000

/** A question to the upstream: rows of a query in which `:'name'` stands for a value. */
export type AskUpstream = <T>(query: string, values?: Record<string, string | number>) => Promise<T[]>

/**
 * Asks the upstream as the role that the member replicates with. By psql, because libpq can insist on channel binding: a
 * client that gives its password to whoever asks, or believes whoever does not ask, would give it to who stands between.
 */
export function upstreamAsker(upstream: Upstream, instance: Instance, signal: AbortSignal): AskUpstream {
  const conninfo = upstreamConninfo(upstream, instance.asking, { dbname: 'postgres' })
  return async <T>(query: string, values: Record<string, string | number> = {}) => {
    const variables = Object.entries(values).flatMap(([name, value]) => ['-v', `${name}=${value}`])
    const r = await runCommand(
      join(instance.enginePrefix, 'bin', 'psql'),
      ['-XAtqw', '-v', 'ON_ERROR_STOP=1', ...variables, '-d', conninfo],
      {
        user: instance.user,
        signal,
        timeoutMs: ASK_BOUND_MS,
        input: `select json_agg(answer) from (\n${query}\n) answer;\n`,
      },
    )
    signal.throwIfAborted()
    if (r.status !== 0)
      throw fault('standby.no_upstream', `could not ask ${upstream.host}:${upstream.port}`, {
        detail: r.stderr.trim() || `psql ended with ${r.status ?? r.signal}.`,
        hint: 'Check that the primary runs and that this host reaches it.',
      })
    return (JSON.parse(r.stdout.trim() || 'null') ?? []) as T[]
  }
}
