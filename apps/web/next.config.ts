import { join } from 'node:path'
import type { NextConfig } from 'next'

const root = join(import.meta.dirname, '../..')

const config: NextConfig = {
  output: 'standalone',
  outputFileTracingRoot: root,
  turbopack: { root },
  transpilePackages: [
    '@floe/agent-contract',
    '@floe/authority',
    '@floe/db',
    '@floe/domain',
    '@floe/host',
    '@floe/operations',
    '@floe/telemetry',
    '@floe/ui',
  ],
  serverExternalPackages: ['pg', '@prisma/client', '@prisma/adapter-pg', 'pino', 'undici', 'eventsource'],
  // types are checked by the test suite, not again on every machine that builds
  typescript: { ignoreBuildErrors: true },
  poweredByHeader: false,
  // a live stream must not be gathered into compressed blocks
  compress: false,
  headers: async () => [
    {
      source: '/:path*',
      headers: [
        { key: 'x-content-type-options', value: 'nosniff' },
        { key: 'x-frame-options', value: 'DENY' },
        { key: 'referrer-policy', value: 'same-origin' },
        { key: 'cross-origin-opener-policy', value: 'same-origin' },
        { key: 'cross-origin-resource-policy', value: 'same-origin' },
        { key: 'permissions-policy', value: 'camera=(), geolocation=(), microphone=()' },
      ],
    },
    { source: '/api/:path*', headers: [{ key: 'cache-control', value: 'no-store' }] },
  ],
}
export default config
