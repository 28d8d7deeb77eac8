/**
 * What a page may load: only the console's own files, scripts and style sheets only with the page's nonce. Style
 * attributes are allowed (charts and popovers set positions with them); images may be data or blob (PNG export).
 */
export function contentSecurityPolicy(nonce: string, development: boolean): string {
  const directives = {
    'default-src': "'self'",
    // React's development build evaluates strings to show where an error came from
    'script-src': `'self' 'nonce-${nonce}' 'strict-dynamic'${development ? " 'unsafe-eval'" : ''}`,
    'script-src-attr': "'none'",
    'style-src': development ? "'self' 'unsafe-inline'" : `'self' 'nonce-${nonce}'`,
    'style-src-attr': "'unsafe-inline'",
    'img-src': "'self' data: blob:",
    'font-src': "'self'",
    'connect-src': "'self'",
    'object-src': "'none'",
    'base-uri': "'none'",
    'form-action': "'self'",
    'frame-ancestors': "'none'",
  }
  return Object.entries(directives)
    .map(([name, value]) => `${name} ${value}`)
    .join('; ')
}
