import { algorithm, keyText, makeKeys, x509 } from './x509'

/** A fresh private key and the certificate request it signed, both PEM. The key never leaves who made it. */
export type KeyedRequest = { key: string; request: string }

/**
 * Makes a key and a request for it. The request says nothing but the public key: what the certificate says of its owner is
 * decided by the authority.
 */
export async function makeRequest(): Promise<KeyedRequest> {
  const keys = await makeKeys()
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: 'CN=Floe',
    keys,
    signingAlgorithm: algorithm,
  })
  return { key: await keyText(keys.privateKey), request: `${request.toString('pem')}\n` }
}
