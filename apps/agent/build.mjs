import { build } from 'esbuild'

// One file, so that the agent starts fast and needs no node_modules on its host.
await build({
  entryPoints: ['src/main.ts'],
  // another path can be given, for tests
  outfile: process.argv[2] ?? 'dist/main.js',
  bundle: true,
  platform: 'node',
  target: 'node22',
  format: 'esm',
  loader: { '.sql': 'text' },
  external: ['pg-native'],
  sourcemap: 'linked',
  legalComments: 'none',
  minifyWhitespace: true,
  minifySyntax: true,
  // CommonJS packages in an ESM bundle still ask for these
  banner: {
    js: "import { createRequire as floeCreateRequire } from 'node:module'; const require = floeCreateRequire(import.meta.url);",
  },
  logLevel: 'warning',
})
