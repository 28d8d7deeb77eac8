import { readFileSync } from 'node:fs'
import type { CertificateFacts } from '@floe/agent-contract'
import { certificateFits, inspectCertificate } from '@floe/authority/inspect'
import { fault, hostUri } from '@floe/domain'
import { replaceFile } from '@floe/host/replace-file'
import type { AgentInstallation } from './installation'

/** What TLS is served with. */
export type ServedIdentity = { cert: string; key: string; ca: string }

/**
 * The agent's certificate and key. The next ones are made and taken over while it serves: it makes a key and a request,
 * the controller brings the certificate, and connections that are open stay as they are.
 */
export class AgentIdentity {
  readonly #installation: Pick<AgentInstallation, 'authority' | 'hostId' | 'identityFile'>
  #identity: string
  #facts: CertificateFacts
  #pending: { key: string; request: string } | null = null
  #onChange: (served: ServedIdentity) => void = () => {}

  constructor(installation: Pick<AgentInstallation, 'authority' | 'hostId' | 'identityFile'>) {
    this.#installation = installation
    try {
      this.#identity = readFileSync(installation.identityFile, 'utf8')
      this.#facts = factsOf(this.#identity)
    } catch (cause) {
      throw fault('agent.no_identity', `file "${installation.identityFile}" holds no certificate`, {
        detail: cause instanceof Error ? cause.message : String(cause),
        hint: 'It is made by "./floe up", and on another host by "./floe agent enrol".',
        cause,
      })
    }
  }

  get served(): ServedIdentity {
    return { cert: this.#identity, key: this.#identity, ca: this.#installation.authority }
  }

  get facts(): CertificateFacts {
    return this.#facts
  }

  onChange(take: (served: ServedIdentity) => void): void {
    this.#onChange = take
  }

  /** A request by a fresh key. Asked again before the answer came, it is the same one. */
  async request(): Promise<{ request: string }> {
    // rarely needed, and not small: loaded only then
    const { makeRequest } = await import('@floe/authority/request')
    this.#pending ??= await makeRequest()
    return { request: this.#pending.request }
  }

  /** Takes the certificate for the pending request into use. Throws `certificate.unexpected` for any other. */
  install(certificate: string): CertificateFacts {
    const pending = this.#pending
    const { authority, hostId, identityFile } = this.#installation
    const key = pending?.key ?? ''
    if (!certificateFits(certificate, { authority, key, uri: hostUri(hostId) }))
      throw fault('certificate.unexpected', 'this certificate was not requested', {
        detail:
          'It is not for the newest request of this agent, or not by the authority of its installation.',
        hint: 'Ask for a request first; a restart of the agent forgets it.',
      })
    const identity = `${certificate.trimEnd()}\n${key}`
    const facts = factsOf(identity)
    replaceFile(identityFile, identity)
    this.#identity = identity
    this.#facts = facts
    this.#pending = null
    this.#onChange(this.served)
    return facts
  }
}

function factsOf(identity: string): CertificateFacts {
  const { fingerprint, notBefore, notAfter } = inspectCertificate(identity)
  return { fingerprint, notBefore, notAfter }
}
