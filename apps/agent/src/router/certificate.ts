import type { AgentHandlers } from '@floe/agent-contract'
import type { Log } from '@floe/host/log'
import type { AgentIdentity } from '../identity'

export const certificateHandlers = (
  identity: AgentIdentity,
  log: Log,
): Pick<AgentHandlers, 'requestCertificate' | 'installCertificate'> => ({
  requestCertificate: () => identity.request(),
  async installCertificate({ certificate }) {
    const facts = identity.install(certificate)
    log.info('certificate.installed', { notAfter: new Date(facts.notAfter).toISOString() })
    return facts
  },
})
