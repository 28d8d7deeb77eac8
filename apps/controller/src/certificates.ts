import type { Hello, IdentityFile } from '@floe/agent-contract'
import type { AgentClient } from '@floe/agent-contract/client'
import {
  type Authority,
  identityIsGood,
  inspectCertificate,
  isDueForRenewal,
  issueClientIdentity,
  issueHostCertificate,
} from '@floe/authority'
import { insertHostCertificate } from '@floe/db'
import { type AgentRight, rightUri } from '@floe/domain'
import { replaceFile } from '@floe/host/replace-file'
import { type LoopOptions, runLoop } from './loop'
import type { ControllerParts } from './parts'
import { addressesOf } from './signing'

/**
 * Renews a host's certificate when it is due: over the connection that the old one secures, the agent is asked for a
 * request by a fresh key and given the certificate for it. Answers true when it was renewed. Safe to break off anywhere:
 * the agent keeps the old one until it has the new one whole.
 */
export async function renewHostCertificate(
  host: { hostId: string; agentUrl: string },
  hello: Hello,
  agent: AgentClient['trpc'],
  parts: Pick<ControllerParts, 'db' | 'log' | 'signing'>,
): Promise<boolean> {
  const { certificate } = hello
  if (!certificate || !hello.capabilities.includes('certificate.renew') || !isDueForRenewal(certificate))
    return false
  const { request } = await agent.certificate.request.mutate()
  const pem = await issueHostCertificate(
    parts.signing.authority,
    { request, hostId: host.hostId, addresses: addressesOf(host.agentUrl) },
    { lifetimeMs: parts.signing.lifetimeMs },
  )
  const facts = inspectCertificate(pem)
  // noted before it is given, so that a revocation finds every certificate there is
  await insertHostCertificate(parts.db.pool, { hostId: host.hostId, ...facts })
  await agent.certificate.install.mutate({ certificate: pem })
  parts.log.info('certificate.renewed', {
    hostId: host.hostId,
    notAfter: new Date(facts.notAfter).toISOString(),
  })
  return true
}

/** The console's own processes, each with the file of its certificate and key. */
export type OwnIdentities = { right: AgentRight; file: IdentityFile }[]

const LOOK_EVERY_MS = 3_600_000

/** Keeps the certificates of web and controller fresh; both look at their file before they use it. */
export async function renewOwnCertificates(
  parts: Pick<ControllerParts, 'log' | 'database'> & { authority: Authority; identities: OwnIdentities },
  signal: AbortSignal,
): Promise<void> {
  const { log, database, authority, identities } = parts
  const loop: LoopOptions = { name: 'renew own certificates', everyMs: LOOK_EVERY_MS, signal, log, database }
  await runLoop(loop, async () => {
    for (const { right, file } of identities) {
      const wanted = { authority: authority.certificate, uri: rightUri(right) }
      if (identityIsGood(file.read(), wanted)) continue
      const identity = await issueClientIdentity(authority, right)
      // those may read it who could before: web's file is its group's
      replaceFile(file.path, identity, { mode: 'kept' })
      log.info('certificate.renewed', {
        right,
        notAfter: new Date(inspectCertificate(identity).notAfter).toISOString(),
      })
    }
  })
}
