import { type Authority, issueClientIdentity, issueHostIdentity, makeAuthority } from '@floe/authority'
import { type AgentRight, LOOPBACK } from '@floe/domain'

/** A throw-away authority of one installation, and what it signs. */
export type TestAuthority = {
  signing: Authority
  /** PEM of its certificate. */
  certificate: string
  /** Certificate and key of a host's agent, in one PEM text; good for a day unless another lifetime is given. */
  host(
    hostId: string,
    o?: { addresses?: readonly string[]; lifetimeMs?: number; now?: number },
  ): Promise<string>
  /** Certificate and key of a process of the console. */
  console(right: AgentRight, o?: { lifetimeMs?: number; now?: number }): Promise<string>
}

const DAY_MS = 86_400_000

export async function makeTestAuthority(): Promise<TestAuthority> {
  const signing = await makeAuthority()
  return {
    signing,
    certificate: signing.certificate,
    host: (hostId, { addresses = [LOOPBACK, 'localhost'], ...o } = {}) =>
      issueHostIdentity(signing, { hostId, addresses }, { lifetimeMs: DAY_MS, ...o }),
    console: (right, o = {}) => issueClientIdentity(signing, right, { lifetimeMs: DAY_MS, ...o }),
  }
}
