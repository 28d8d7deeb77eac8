import { createPrivateKey } from 'node:crypto'
import { isIP } from 'node:net'
import { type AgentRight, CERTIFICATE_LIFETIME_MS, fault, hostUri, rightUri } from '@floe/domain'
import { makeRequest } from './request'
import { algorithm, DAY_MS, keyText, makeKeys, provider, serialNumber, x509 } from './x509'

const AUTHORITY_DAYS = 7_300

/** PEM texts of the authority's certificate and its private key. */
export type Authority = { certificate: string; key: string }

/** The installation's own authority: signs hosts and the console's processes, nothing else. Valid for twenty years. */
export async function makeAuthority(now = Date.now()): Promise<Authority> {
  const keys = await makeKeys()
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: 'CN=Floe installation authority',
    // clocks of other hosts may be behind
    notBefore: new Date(now - DAY_MS),
    notAfter: new Date(now + AUTHORITY_DAYS * DAY_MS),
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  })
  return { certificate: `${certificate.toString('pem')}\n`, key: await keyText(keys.privateKey) }
}

export type IssueOptions = {
  /** How long it is good, in ms; the default is CERTIFICATE_LIFETIME_MS, and it never outlives its authority. */
  lifetimeMs?: number | undefined
  now?: number | undefined
}

/**
 * The certificate of a host's agent for its request: who it is (the host's id) and where it answers. It can serve and
 * cannot call. Throws `certificate.bad_request` for what is not a request, or was not signed by its own key.
 */
export async function issueHostCertificate(
  authority: Authority,
  host: { request: string; hostId: string; addresses: readonly string[] },
  options: IssueOptions = {},
): Promise<string> {
  return issue(authority, host.request, options, {
    subject: `CN=Floe agent, OU=${host.hostId}`,
    usage: x509.ExtendedKeyUsage.serverAuth,
    names: [
      { type: 'url', value: hostUri(host.hostId) },
      ...[...new Set(host.addresses)].map((value) => ({
        type: isIP(value) === 0 ? ('dns' as const) : ('ip' as const),
        value,
      })),
    ],
  })
}

/** Certificate and key, in one PEM text, of a process of the console: what it may do at an agent stands in the certificate. */
export async function issueClientIdentity(
  authority: Authority,
  right: AgentRight,
  options: IssueOptions = {},
): Promise<string> {
  const { key, request } = await makeRequest()
  const certificate = await issue(authority, request, options, {
    subject: `CN=Floe console, OU=${right}`,
    usage: x509.ExtendedKeyUsage.clientAuth,
    names: [{ type: 'url', value: rightUri(right) }],
  })
  return `${certificate}${key}`
}

/** Certificate and key, in one PEM text, of the agent of the authority's own machine. */
export async function issueHostIdentity(
  authority: Authority,
  host: { hostId: string; addresses: readonly string[] },
  options: IssueOptions = {},
): Promise<string> {
  const { key, request } = await makeRequest()
  return `${await issueHostCertificate(authority, { ...host, request }, options)}${key}`
}

async function issue(
  authority: Authority,
  request: string,
  { lifetimeMs = CERTIFICATE_LIFETIME_MS, now = Date.now() }: IssueOptions,
  to: { subject: string; usage: string; names: { type: 'url' | 'dns' | 'ip'; value: string }[] },
): Promise<string> {
  const publicKey = await publicKeyOf(request)
  const issuer = new x509.X509Certificate(authority.certificate)
  const signingKey = await provider.subtle.importKey(
    'pkcs8',
    new Uint8Array(createPrivateKey(authority.key).export({ type: 'pkcs8', format: 'der' })),
    algorithm,
    false,
    ['sign'],
  )
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject: to.subject,
    issuer: issuer.subject,
    // clocks of other hosts may be behind
    notBefore: new Date(now - Math.min(DAY_MS, lifetimeMs / 10)),
    notAfter: new Date(Math.min(now + lifetimeMs, issuer.notAfter.getTime())),
    signingAlgorithm: algorithm,
    publicKey,
    signingKey,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([to.usage]),
      new x509.SubjectAlternativeNameExtension(to.names),
      await x509.SubjectKeyIdentifierExtension.create(publicKey),
      await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey),
    ],
  })
  return `${certificate.toString('pem')}\n`
}

/** The public key of a request whose signature proves that its sender has the private one. */
async function publicKeyOf(pem: string) {
  const bad = (cause?: unknown) =>
    fault('certificate.bad_request', 'the certificate request is not valid', {
      detail: 'It is not a PKCS#10 request for an ECDSA key over P-256, signed by that key.',
      cause,
    })
  let request: InstanceType<typeof x509.Pkcs10CertificateRequest>
  let good = false
  try {
    request = new x509.Pkcs10CertificateRequest(pem)
    const { name, namedCurve } = request.publicKey.algorithm as { name: string; namedCurve?: string }
    good = name === algorithm.name && namedCurve === algorithm.namedCurve && (await request.verify())
  } catch (cause) {
    throw bad(cause)
  }
  if (!good) throw bad()
  return request.publicKey
}
