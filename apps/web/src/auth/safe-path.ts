/** Where a sign-in leads: only to a page of the console itself, never to another site. */
export function safePath(next: string | undefined): string {
  if (!next || !/^\/(?![/\\])/.test(next) || next.startsWith('/sign-in')) return '/instances'
  try {
    const url = new URL(next, 'http://console.invalid')
    return url.origin === 'http://console.invalid' ? `${url.pathname}${url.search}${url.hash}` : '/instances'
  } catch {
    return '/instances'
  }
}
