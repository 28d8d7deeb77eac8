import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

const YEAR_S = 365 * 86_400

/**
 * A cookie that says: this browser has signed in to this account before. It opens nothing; it only keeps the wrong
 * guesses of others from making its owner wait, also behind a proxy where everybody has one address.
 */
export class KnownDevices {
  readonly #secret: string
  readonly #secure: boolean

  constructor(secret: string, secure: boolean) {
    this.#secret = secret
    this.#secure = secure
  }

  /** The browser's id where it shows a cookie of this account's. */
  deviceOf(headers: Headers, email: string): string | null {
    const name = cookieName(email)
    const found = (headers.get('cookie') ?? '').split(/; */).find((part) => part.startsWith(`${name}=`))
    const [, device, signature] = /^[^=]+=([0-9a-f]{32})\.([0-9a-f]{64})$/.exec(found ?? '') ?? []
    if (!device || !signature) return null
    const expected = Buffer.from(this.#sign(email, device))
    return timingSafeEqual(expected, Buffer.from(signature)) ? device : null
  }

  /** The cookie to set after a sign-in. */
  cookie(email: string, device = randomBytes(16).toString('hex')): string {
    return [
      `${cookieName(email)}=${device}.${this.#sign(email, device)}`,
      'Path=/api/auth/sign-in',
      `Max-Age=${YEAR_S}`,
      'HttpOnly',
      'SameSite=Lax',
      ...(this.#secure ? ['Secure'] : []),
    ].join('; ')
  }

  #sign(email: string, device: string): string {
    return createHmac('sha256', this.#secret)
      .update(`known device\n${email.toLowerCase()}\n${device}`)
      .digest('hex')
  }
}

/** One for each account, without its name. */
function cookieName(email: string): string {
  return `floe.known-${createHash('sha256').update(email.toLowerCase()).digest('hex').slice(0, 12)}`
}
