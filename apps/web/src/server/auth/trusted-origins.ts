import type { Installation } from '@floe/domain'

const loopback = new Set(['127.0.0.1', 'localhost', '[::1]'])

/** Origins a browser may send changes from: the console's own URL, and its other names where it is on loopback. */
export function trustedOrigins({ webUrl }: Pick<Installation, 'webUrl'>): string[] {
  const url = new URL(webUrl)
  if (!loopback.has(url.hostname)) return [url.origin]
  const port = url.port ? `:${url.port}` : ''
  return [...loopback].map((host) => `${url.protocol}//${host}${port}`)
}

/**
 * True when a request was made by the console's own pages. Browsers say so in Sec-Fetch-Site and Origin; neither can be
 * set by another site's script.
 */
export function isSameOrigin(headers: Headers, trusted: readonly string[]): boolean {
  const site = headers.get('sec-fetch-site')
  if (site !== null && site !== 'same-origin') return false
  const origin = headers.get('origin')
  if (origin !== null) return trusted.includes(origin) || origin === ownOrigin(headers)
  return site === 'same-origin'
}

/** The origin the browser addressed; a request whose Origin equals it did not cross from another site. */
function ownOrigin(headers: Headers): string | null {
  const host = headers.get('x-forwarded-host') ?? headers.get('host')
  if (!host) return null
  return `${headers.get('x-forwarded-proto') ?? 'http'}://${host}`
}
