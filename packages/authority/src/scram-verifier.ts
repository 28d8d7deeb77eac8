import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto'

const ITERATIONS = 4_096

/**
 * The SCRAM-SHA-256 verifier PostgreSQL stores for a password (`SCRAM-SHA-256$4096:salt$StoredKey:ServerKey`), made where
 * the password is made, so that the password itself travels nowhere. Passwords are ASCII without control characters:
 * for them the normalisation of RFC 4013 changes nothing. Throws RangeError on others.
 */
export function scramVerifier(password: string, salt: Buffer = randomBytes(16)): string {
  if (!/^[\x20-\x7e]+$/.test(password)) throw new RangeError('password must be printable ASCII')
  const salted = pbkdf2Sync(password, salt, ITERATIONS, 32, 'sha256')
  const hmac = (text: string) => createHmac('sha256', salted).update(text).digest()
  const storedKey = createHash('sha256').update(hmac('Client Key')).digest('base64')
  const serverKey = hmac('Server Key').toString('base64')
  return `SCRAM-SHA-256$${ITERATIONS}:${salt.toString('base64')}$${storedKey}:${serverKey}`
}
