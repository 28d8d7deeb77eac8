import 'reflect-metadata'
import { createPrivateKey, X509Certificate as NodeCertificate, randomBytes, webcrypto } from 'node:crypto'
import * as x509 from '@peculiar/x509'

x509.cryptoProvider.set(webcrypto as Crypto)

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
const DAY_MS = 86_400_000
const AUTHORITY_DAYS = 7_300
const AGENT_DAYS = 3_650
/** A certificate is renewed when it would end within this time. */
const RENEW_DAYS = 30

/** PEM texts of a certificate and its private key. */
export type KeyedCertificate = { certificate: string; key: string }

const serialNumber = () => {
  const bytes = randomBytes(16)
  // a serial number is positive
  bytes[0] = (bytes[0] as number) & 0x7f
  return bytes.toString('hex')
}

async function privateKeyText(key: webcrypto.CryptoKey): Promise<string> {
  const der = await webcrypto.subtle.exportKey('pkcs8', key)
  return x509.PemConverter.encode(der, 'PRIVATE KEY')
}

async function keyPair(): Promise<webcrypto.CryptoKeyPair> {
  return (await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])) as webcrypto.CryptoKeyPair
}

/** The installation's own authority: signs agents and nothing else. Valid for twenty years. */
export async function makeAuthority(now = Date.now()): Promise<KeyedCertificate> {
  const keys = await keyPair()
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: 'CN=Floe installation authority',
    // clocks of other hosts may be behind
    notBefore: new Date(now - DAY_MS),
    notAfter: new Date(now + AUTHORITY_DAYS * DAY_MS),
    signingAlgorithm: algorithm,
    keys: keys as CryptoKeyPair,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey as CryptoKey),
    ],
  })
  return {
    certificate: `${certificate.toString('pem')}\n`,
    key: `${await privateKeyText(keys.privateKey)}\n`,
  }
}

/** A certificate for the agent of this host, good for 127.0.0.1 and the given names. */
export async function issueAgentCertificate(
  authority: KeyedCertificate,
  names: string[],
  now = Date.now(),
): Promise<KeyedCertificate> {
  const issuer = new x509.X509Certificate(authority.certificate)
  const signingKey = await webcrypto.subtle.importKey(
    'pkcs8',
    createPrivateKey(authority.key).export({ type: 'pkcs8', format: 'der' }),
    algorithm,
    false,
    ['sign'],
  )
  const keys = await keyPair()
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject: 'CN=Floe agent',
    issuer: issuer.subject,
    notBefore: new Date(now - DAY_MS),
    notAfter: new Date(Math.min(now + AGENT_DAYS * DAY_MS, issuer.notAfter.getTime())),
    signingAlgorithm: algorithm,
    publicKey: keys.publicKey as CryptoKey,
    signingKey: signingKey as CryptoKey,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension([
        { type: 'ip', value: '127.0.0.1' },
        ...names.map((value) => ({ type: 'dns' as const, value })),
      ]),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey as CryptoKey),
      await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey),
    ],
  })
  return {
    certificate: `${certificate.toString('pem')}\n`,
    key: `${await privateKeyText(keys.privateKey)}\n`,
  }
}

/** False when the certificate is not the authority's, does not fit its key, lacks a name, or ends within 30 days. */
export function agentCertificateIsGood(
  certificate: string,
  key: string,
  authority: string,
  names: string[],
  now = Date.now(),
): boolean {
  try {
    const parsed = new NodeCertificate(certificate)
    return (
      parsed.verify(new NodeCertificate(authority).publicKey) &&
      parsed.checkPrivateKey(createPrivateKey(key)) &&
      parsed.checkIP('127.0.0.1') !== undefined &&
      names.every((name) => parsed.checkHost(name) !== undefined) &&
      Date.parse(parsed.validTo) > now + RENEW_DAYS * DAY_MS
    )
  } catch {
    return false
  }
}
