import 'reflect-metadata'
import { randomBytes, webcrypto } from 'node:crypto'
import * as x509 from '@peculiar/x509'

type Keys = Awaited<ReturnType<ReturnType<typeof x509.cryptoProvider.get>['subtle']['generateKey']>>
export type KeyPair = Extract<Keys, { privateKey: unknown }>

const provider = webcrypto as unknown as ReturnType<typeof x509.cryptoProvider.get>
x509.cryptoProvider.set(provider)

export { provider, x509 }
export const DAY_MS = 86_400_000

/** Every key of Floe's: ECDSA over P-256. */
export const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const

export async function makeKeys(): Promise<KeyPair> {
  return (await provider.subtle.generateKey(algorithm, true, ['sign', 'verify'])) as KeyPair
}

/** A private key as PKCS#8 in PEM, with its line end. */
export async function keyText(key: KeyPair['privateKey']): Promise<string> {
  const der = await provider.subtle.exportKey('pkcs8', key)
  return `${x509.PemConverter.encode(der, 'PRIVATE KEY')}\n`
}

/** A random serial number of 16 bytes, positive as the standard wants it. */
export function serialNumber(): string {
  const bytes = randomBytes(16)
  bytes[0] = (bytes[0] as number) & 0x7f
  return bytes.toString('hex')
}
