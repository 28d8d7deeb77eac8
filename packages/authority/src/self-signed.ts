import { algorithm, DAY_MS, keyText, makeKeys, serialNumber, x509 } from './x509'

const DAYS = 7_300

/**
 * Certificate and key, in one PEM text, that nobody vouches for: good for twenty years, for servers whose clients check
 * them by other means, such as channel binding.
 */
export async function makeSelfSignedIdentity(commonName: string, now = Date.now()): Promise<string> {
  const keys = await makeKeys()
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: [{ CN: [commonName] }],
    // clocks of other hosts may be behind
    notBefore: new Date(now - DAY_MS),
    notAfter: new Date(now + DAYS * DAY_MS),
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
    ],
  })
  return `${certificate.toString('pem')}\n${await keyText(keys.privateKey)}`
}
