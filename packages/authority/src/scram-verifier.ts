import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto'
import { preparedPassword } from './saslprep'

const ITERATIONS = 4_096

/**
 * The SCRAM-SHA-256 verifier PostgreSQL stores for a password (`SCRAM-SHA-256$4096:salt$StoredKey:ServerKey`), made where
 * the password is made, so that the password itself travels nowhere. Throws RangeError on an empty password, and on one that
 * has U+0000 or half of a surrogate pair, which PostgreSQL cannot be told.
 */
export function scramVerifier(password: string, salt: Buffer = randomBytes(16)): string {
  if (password === '' || password.includes('\0') || !password.isWellFormed())
    throw new RangeError('password must be Unicode text without U+0000, and not empty')
  const salted = pbkdf2Sync(preparedPassword(password), salt, ITERATIONS, 32, 'sha256')
  const hmac = (text: string) => createHmac('sha256', salted).update(text).digest()
  const storedKey = createHash('sha256').update(hmac('Client Key')).digest('base64')
  const serverKey = hmac('Server Key').toString('base64')
  return `SCRAM-SHA-256$${ITERATIONS}:${salt.toString('base64')}$${storedKey}:${serverKey}`
}
