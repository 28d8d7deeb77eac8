import { hashPassword, verifyPassword } from 'better-auth/crypto'

/** Computes each answer once in this process. */
function once<Input, Output>(compute: (input: Input) => Promise<Output>) {
  const known = new Map<string, Promise<Output>>()
  return (input: Input) => {
    const key = JSON.stringify(input)
    const answer = known.get(key) ?? compute(input)
    known.set(key, answer)
    return answer
  }
}

/** The console's own hashes, which cost a tenth of a second by design, once each: a passphrase has one salt here. */
export const passphrases = { hash: once(hashPassword), verify: once(verifyPassword) }
