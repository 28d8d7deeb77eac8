import 'reflect-metadata'
import { webcrypto } from 'node:crypto'
import * as x509 from '@peculiar/x509'

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const

/** A throw-away authority and a certificate for 127.0.0.1 and localhost, as PEM. Valid for a day. */
export async function makeCertificates(): Promise<{ authority: string; certificate: string; key: string }> {
  const provider = webcrypto as unknown as ReturnType<typeof x509.cryptoProvider.get>
  x509.cryptoProvider.set(provider)
  const keys = () => provider.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const notBefore = new Date(Date.now() - 60_000)
  const notAfter = new Date(Date.now() + 86_400_000)
  const authorityKeys = await keys()
  const authority = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: '01',
    name: 'CN=Floe test authority',
    notBefore,
    notAfter,
    signingAlgorithm: algorithm,
    keys: authorityKeys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
    ],
  })
  const agentKeys = await keys()
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: '02',
    subject: 'CN=agent',
    issuer: authority.subject,
    notBefore,
    notAfter,
    signingAlgorithm: algorithm,
    publicKey: agentKeys.publicKey,
    signingKey: authorityKeys.privateKey,
    extensions: [
      new x509.SubjectAlternativeNameExtension([
        { type: 'ip', value: '127.0.0.1' },
        { type: 'dns', value: 'localhost' },
      ]),
    ],
  })
  const pkcs8 = await provider.subtle.exportKey('pkcs8', agentKeys.privateKey)
  return {
    authority: authority.toString('pem'),
    certificate: certificate.toString('pem'),
    key: x509.PemConverter.encode(pkcs8, 'PRIVATE KEY'),
  }
}
