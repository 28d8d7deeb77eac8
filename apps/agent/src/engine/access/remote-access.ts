import { type HbaRule, letsInWithoutTls, type RemoteAccess } from '@floe/domain'
import type { AskRows } from '../sql/extension-views'
import remoteAccessSql from '../sql/remote-access.sql'

type Row = { tls: boolean; listens: string; rules: HbaRule[]; sessions: number }

/** How clients on other hosts come in, as the engine itself reads its files; null while it does not answer. */
export async function readRemoteAccess(ask: AskRows): Promise<RemoteAccess | null> {
  const row = (await ask(remoteAccessSql))?.[0] as Row | undefined
  if (!row) return null
  return {
    tls: row.tls,
    listens: row.listens.split(',').some((address) => !/^(|localhost|127\..*|::1)$/.test(address.trim())),
    withoutTls: letsInWithoutTls(row.rules),
    sessionsWithoutTls: row.sessions,
  }
}
