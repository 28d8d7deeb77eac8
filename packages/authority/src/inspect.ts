import { createPrivateKey, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { RENEW_AT_SHARE, urisOf } from '@floe/domain'

/** A private key in PEM, wherever it stands in a text. */
const keyBlock = /-----BEGIN PRIVATE KEY-----[\s\S]+?-----END PRIVATE KEY-----/

/** sha256 of a certificate in hexadecimal without colons: what names an authority in the command that enrols a host. */
export function fingerprintOf(certificate: string): string {
  return new X509Certificate(certificate).fingerprint256.replaceAll(':', '').toLowerCase()
}

export type InspectedCertificate = {
  fingerprint: string
  notBefore: number
  notAfter: number
  uris: string[]
}

/** What a certificate says; the first one of the text. Times in ms since the epoch. */
export function inspectCertificate(pem: string): InspectedCertificate {
  const parsed = new X509Certificate(pem)
  return {
    fingerprint: fingerprintOf(pem),
    notBefore: Date.parse(parsed.validFrom),
    notAfter: Date.parse(parsed.validTo),
    uris: urisOf(parsed.subjectAltName),
  }
}

/** True once so much of its time is over that a fresh one is due; there is time then for many tries. */
export function isDueForRenewal(
  { notBefore, notAfter }: Pick<InspectedCertificate, 'notBefore' | 'notAfter'>,
  now = Date.now(),
): boolean {
  return now >= notBefore + (notAfter - notBefore) * RENEW_AT_SHARE
}

/**
 * True when an identity (certificate and key in one text) is this authority's, its key fits, it says `uri` of its owner
 * and serves every address, and it is not yet due for renewal.
 */
export function identityIsGood(
  identity: string,
  wanted: { authority: string; uri: string; addresses?: readonly string[]; now?: number },
): boolean {
  try {
    const parsed = new X509Certificate(identity)
    const key = keyBlock.exec(identity)?.[0] ?? ''
    return (
      certificateFits(identity, { ...wanted, key }) &&
      (wanted.addresses ?? []).every((address) =>
        isIP(address) === 0 ? parsed.checkHost(address) !== undefined : parsed.checkIP(address) !== undefined,
      ) &&
      !isDueForRenewal(inspectCertificate(identity), wanted.now)
    )
  } catch {
    return false
  }
}

/** True when a certificate was signed by the authority, fits the key and says `uri` of its owner. */
export function certificateFits(
  certificate: string,
  wanted: { authority: string; key: string; uri: string },
): boolean {
  try {
    const parsed = new X509Certificate(certificate)
    return (
      parsed.verify(new X509Certificate(wanted.authority).publicKey) &&
      parsed.checkPrivateKey(createPrivateKey(wanted.key)) &&
      inspectCertificate(certificate).uris.includes(wanted.uri)
    )
  } catch {
    return false
  }
}
