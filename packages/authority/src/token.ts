import {
  createHash,
  createPrivateKey,
  createPublicKey,
  type KeyObject,
  randomBytes,
  sign,
  verify,
} from 'node:crypto'

/*
 * A token for enrolling one host is the seed of an Ed25519 key. Who has it signs the certificate request; the token itself
 * never crosses a wire, so that who listens on the way (the console may speak plain HTTP) can neither use it nor put a
 * request of his own in its place. The console keeps only the sha256 of the public key.
 */
const PREFIX = 'floe-'
// an Ed25519 seed as PKCS#8 in DER (RFC 8410)
const seedHeader = Buffer.from('302e020100300506032b657004220420', 'hex')

/** A fresh token: 32 random bytes. */
export function makeEnrolmentToken(): string {
  return `${PREFIX}${randomBytes(32).toString('base64url')}`
}

/** What a message proves with a token: the token's public key and its signature, both base64url. */
export type TokenProof = { tokenKey: string; signature: string }

function keyOf(token: string): KeyObject | null {
  const seed = Buffer.from(token.startsWith(PREFIX) ? token.slice(PREFIX.length) : '', 'base64url')
  if (seed.length !== 32) return null
  return createPrivateKey({ key: Buffer.concat([seedHeader, seed]), format: 'der', type: 'pkcs8' })
}

const publicText = (key: KeyObject) => key.export({ type: 'spki', format: 'der' }).toString('base64url')
const hashOf = (tokenKey: string) => createHash('sha256').update(tokenKey).digest('hex')

/** True for a text that has the form of a token. */
export const isEnrolmentToken = (text: string): boolean => keyOf(text) !== null

/** What is stored of a token. Throws for a text that is none. */
export function enrolmentTokenHash(token: string): string {
  const key = keyOf(token)
  if (key === null) throw new Error('not an enrolment token')
  return hashOf(publicText(createPublicKey(key)))
}

/** Signs a message by a token. Throws for a text that is none. */
export function proveByToken(token: string, message: string): TokenProof {
  const key = keyOf(token)
  if (key === null) throw new Error('not an enrolment token')
  return {
    tokenKey: publicText(createPublicKey(key)),
    signature: sign(null, Buffer.from(message), key).toString('base64url'),
  }
}

/** The stored hash of the token that signed the message; null when the proof is none. */
export function tokenHashOfProof(proof: TokenProof, message: string): string | null {
  try {
    const der = Buffer.from(proof.tokenKey, 'base64url')
    const key = createPublicKey({ key: der, format: 'der', type: 'spki' })
    if (key.asymmetricKeyType !== 'ed25519') return null
    const good = verify(null, Buffer.from(message), key, Buffer.from(proof.signature, 'base64url'))
    return good ? hashOf(publicText(key)) : null
  } catch {
    return null
  }
}
