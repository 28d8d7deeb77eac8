// Bundles the command line and the supervisor, so that a verb starts without resolving a package tree.
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { build } from 'esbuild'

/** Messages of schemas are written by us, or in English: the other fifty languages of zod only take time at each start. */
const englishOnly = {
  name: 'english-only',
  setup({ onLoad }) {
    onLoad({ filter: /\/zod\/v4\/locales\/index\.js$/ }, ({ path }) => ({
      contents: `export { default as en } from './en.js'`,
      resolveDir: dirname(path),
    }))
  },
}

const outdir = join(import.meta.dirname, 'dist')
const { metafile } = await build({
  absWorkingDir: import.meta.dirname,
  entryPoints: { main: 'src/start.ts', supervise: 'src/supervise/main.ts' },
  outdir,
  bundle: true,
  platform: 'node',
  target: 'node22',
  format: 'esm',
  splitting: true,
  plugins: [englishOnly],
  chunkNames: 'part-[hash]',
  legalComments: 'none',
  logLevel: 'warning',
  metafile: true,
  // packages written for CommonJS still ask for require
  banner: {
    js: "import { createRequire as floeRequire } from 'node:module'; const require = floeRequire(import.meta.url);",
  },
})
const written = new Set(Object.keys(metafile.outputs).map((file) => basename(file)))
for (const file of readdirSync(outdir))
  if (!written.has(file)) rmSync(join(outdir, file), { recursive: true, force: true })
// where there is this directory, verbs keep what V8 made of the bundle (src/start.ts); a package has none
mkdirSync(join(outdir, 'compiled'), { recursive: true })
