import type { Installation } from '@floe/domain'

const loopback = new Set(['127.0.0.1', 'localhost', '[::1]'])

/**
 * Origins a browser may send changes from: the console's own URL; on loopback also its other names; where it listens for
 * other machines, also the address this browser found it under, for it may have several.
 */
export function trustedOrigins(
  { webUrl, webAddress }: Pick<Installation, 'webUrl' | 'webAddress'>,
  headers: Headers | undefined,
): string[] {
  const url = new URL(webUrl)
  const origins = [url.origin]
  const port = url.port ? `:${url.port}` : ''
  if (loopback.has(url.hostname)) origins.push(...[...loopback].map((h) => `${url.protocol}//${h}${port}`))
  const own = headers && ownOrigin(headers)
  if (own && !loopback.has(webAddress)) origins.push(own)
  return origins
}

/**
 * True when a request was made by the console's own pages. Browsers say so in Sec-Fetch-Site and Origin; neither can be
 * set by another site's script.
 */
export function isSameOrigin(headers: Headers, trusted: readonly string[]): boolean {
  const site = headers.get('sec-fetch-site')
  if (site !== null && site !== 'same-origin') return false
  const origin = headers.get('origin')
  if (origin !== null) return trusted.includes(origin)
  return site === 'same-origin'
}

/** The origin the browser addressed. */
function ownOrigin(headers: Headers): string | null {
  const host = headers.get('x-forwarded-host') ?? headers.get('host')
  if (!host) return null
  return `${headers.get('x-forwarded-proto') ?? 'http'}://${host}`
}
