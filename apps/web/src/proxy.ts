import { type NextRequest, NextResponse } from 'next/server'
import { contentSecurityPolicy } from './server/content-security-policy'

/** Every page gets a nonce of its own, and its path so that the sign-in page can lead back to it. */
export function proxy(request: NextRequest) {
  const nonce = Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString('base64')
  const policy = contentSecurityPolicy(nonce, process.env.NODE_ENV === 'development')
  const headers = new Headers(request.headers)
  headers.set('x-nonce', nonce)
  headers.set('x-floe-path', `${request.nextUrl.pathname}${request.nextUrl.search}`)
  // Next puts the nonce of this header on its own scripts
  headers.set('content-security-policy', policy)
  const response = NextResponse.next({ request: { headers } })
  response.headers.set('content-security-policy', policy)
  return response
}

export const config = {
  matcher: ['/((?!api/|healthz|_next/static|_next/image|favicon.ico|icon.svg).*)'],
}
