import { z } from 'zod'

/** How clients on other hosts come in, as the running engine reports. */
export const RemoteAccess = z.object({
  /** It serves TLS. */
  tls: z.boolean(),
  /** It listens on an address that other hosts reach. */
  listens: z.boolean(),
  /** A rule of pg_hba.conf lets them in without TLS; null where its files have an error, and older rules hold. */
  withoutTls: z.boolean().nullable(),
  /** Sessions of clients on other hosts that are open without TLS. */
  sessionsWithoutTls: z.number().int(),
})
export type RemoteAccess = z.infer<typeof RemoteAccess>

/** A row of pg_hba_file_rules, as far as it matters here. */
export type HbaRule = {
  type: string | null
  database: readonly string[] | null
  userName: readonly string[] | null
  address: string | null
  netmask: string | null
  authMethod: string | null
  error: string | null
}

const isOwnHost = ({ address }: HbaRule) =>
  address === 'samehost' || address === 'localhost' || address === '::1' || /^127\./.test(address ?? '')

const coversAll = (names: readonly string[] | null) => names?.includes('all') === true

/**
 * Whether a rule lets a client on another host in without TLS. Rules are read in order: after one that rejects every such
 * client the others do not count. A wide mask of a loopback address does not occur; it would be an address of this host.
 */
export function letsInWithoutTls(rules: readonly HbaRule[]): boolean | null {
  if (rules.some((rule) => rule.error !== null)) return null
  for (const rule of rules) {
    if ((rule.type !== 'host' && rule.type !== 'hostnossl') || isOwnHost(rule)) continue
    if (rule.authMethod !== 'reject') return true
    if (rule.address === 'all' && coversAll(rule.database) && coversAll(rule.userName)) return false
  }
  return false
}

/** Whether strings for clients say that they use TLS: the instance serves it, and other hosts come in by it only. */
export const requiresTls = (access: RemoteAccess | null | undefined): boolean =>
  access?.tls === true && access.withoutTls === false

/** What a person should know of an instance that lets clients on other hosts in without TLS; null where it does not. */
export function withoutTlsWarning(access: RemoteAccess | null | undefined): string | null {
  if (access?.withoutTls !== true) return null
  const open =
    access.sessionsWithoutTls > 0
      ? ` ${access.sessionsWithoutTls} ${access.sessionsWithoutTls === 1 ? 'session is' : 'sessions are'} open without TLS now.`
      : ''
  return access.listens
    ? `Clients on other hosts can connect without TLS: their data travels unencrypted.${open}`
    : 'pg_hba.conf lets clients on other hosts connect without TLS. The instance listens on this host only, so none can.'
}
