import type { EngineUser } from '../../host/engine-user'
import { readOwnedFile } from '../../host/owned-files'
import { replaceInTree } from '../../host/tree'
import type { InstanceLayout } from '../directory/layout'

/** What instances of earlier versions have: a client on another host may come in without TLS. Taken from here to there. */
const lines: readonly (readonly [before: string, after: string])[] = [
  [
    'host    all          all   all           scram-sha-256',
    `host    all          all   127.0.0.1/32  scram-sha-256
host    all          all   ::1/128       scram-sha-256
hostssl all          all   all           scram-sha-256`,
  ],
  [
    'host    replication  all   all           scram-sha-256',
    `host    replication  all   127.0.0.1/32  scram-sha-256
host    replication  all   ::1/128       scram-sha-256
hostssl replication  all   all           scram-sha-256`,
  ],
]

/**
 * pg_hba.conf of a new instance. Nobody gets in without a password, not even through the socket. Clients on other hosts
 * come in over TLS only; listen_addresses says whether they reach it at all. Those on this host need no TLS: nobody is
 * between them and the engine, and some drivers have none.
 */
export const hostBasedAuthentication = `# Clients on other hosts come in over TLS only. Those on this host may leave it out: nobody is in between.
# TYPE  DATABASE     USER  ADDRESS       METHOD
local   all          all                 scram-sha-256
${lines[0]?.[1]}
local   replication  all                 scram-sha-256
${lines[1]?.[1]}
`

/**
 * Replaces the lines of pg_hba.conf that Floe wrote, each only where it stands exactly so; everything else is a person's.
 * Answers the text of before, or null where there was no such line.
 */
export function requireTlsInFile(layout: InstanceLayout, user: EngineUser): string | null {
  const before = readOwnedFile(layout.hbaFile) ?? ''
  const after = before
    .split('\n')
    .map((line) => lines.find(([written]) => written === line)?.[1] ?? line)
    .join('\n')
  if (after === before) return null
  replaceInTree(layout.hbaFile, after, user)
  return before
}

/** Puts pg_hba.conf back to a text of before. */
export function restoreHbaFile(layout: InstanceLayout, text: string, user: EngineUser): void {
  replaceInTree(layout.hbaFile, text, user)
}
