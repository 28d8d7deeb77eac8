import { build } from 'esbuild'

// One file. The database packages stay outside: Prisma's client brings files of its own that it finds by their place.
await build({
  entryPoints: ['src/main.ts'],
  // another path can be given, for tests
  outfile: process.argv[2] ?? 'dist/main.js',
  bundle: true,
  platform: 'node',
  target: 'node22',
  format: 'esm',
  external: ['pg', 'pg-native', '@prisma/*'],
  sourcemap: 'linked',
  legalComments: 'none',
  // CommonJS packages in an ESM bundle still ask for these
  banner: {
    js: "import { createRequire as floeCreateRequire } from 'node:module'; const require = floeCreateRequire(import.meta.url);",
  },
  logLevel: 'warning',
})
