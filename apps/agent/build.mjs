import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { build } from 'esbuild'

// another path can be given, for tests
const outfile = process.argv[2] ?? 'dist/main.js'

// The door to trees of other users, beside the bundle. Node can neither switch its file-system user nor open below a
// directory. It is made first, so that a bundle is never there without it.
const door = join(dirname(outfile), 'floe-tree')
mkdirSync(dirname(outfile), { recursive: true })
const compiled = spawnSync(
  'cc',
  [
    ...['-std=c11', '-O2', '-Wall', '-Wextra', '-Werror'],
    ...['-D_FORTIFY_SOURCE=2', '-fstack-protector-strong', '-fPIE', '-pie', '-Wl,-z,relro,-z,now'],
    ...['-o', `${door}.new`, 'native/floe-tree.c'],
  ],
  { stdio: ['ignore', 'inherit', 'inherit'] },
)
if (compiled.status !== 0) {
  rmSync(`${door}.new`, { force: true })
  console.error(
    compiled.error
      ? `error: could not run the C compiler "cc": ${compiled.error.code}\nHINT:  Run as root: apt-get install gcc libc6-dev`
      : 'error: could not compile "native/floe-tree.c"\nHINT:  It needs the packages gcc and libc6-dev.',
  )
  process.exit(1)
}
renameSync(`${door}.new`, door)

// the check of the machine, which a host without a checkout has only here
const check = join(dirname(outfile), 'floe-host-check')
copyFileSync('../../infra/host-check/floe-host-check', `${check}.new`)
renameSync(`${check}.new`, check)

/** Messages of schemas are written by us, or in English: the other fifty languages of zod would only take memory. */
const englishOnly = {
  name: 'english-only',
  setup({ onLoad }) {
    onLoad({ filter: /\/zod\/v4\/locales\/index\.js$/ }, ({ path }) => ({
      contents: `export { default as en } from './en.js'`,
      resolveDir: dirname(path),
    }))
  },
}

// what stands for the build until it is known: a digest of everything that the agent runs, so that two builds that differ have
// different versions, and the same sources the same one
const unknownBuild = '@FLOE-BUILD@'

// One file, so that the agent starts fast and needs no node_modules on its host.
const { outputFiles } = await build({
  entryPoints: ['src/main.ts'],
  outfile,
  write: false,
  define: { FLOE_AGENT_BUILD: JSON.stringify(unknownBuild) },
  bundle: true,
  platform: 'node',
  target: 'node22',
  format: 'esm',
  loader: { '.sql': 'text', '.service': 'text' },
  external: ['pg-native'],
  inject: ['src/router/answer.ts'],
  plugins: [englishOnly],
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
// One character beyond Latin-1 makes V8 keep the whole source with two bytes each. esbuild escapes those of strings, not
// those of regular expressions.
const ascii = (text) =>
  text.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
const bundle = outputFiles.find(({ path }) => path.endsWith('.js'))
const source = ascii(bundle.text)
const digest = createHash('sha256').update(source)
for (const beside of [door, check]) digest.update(readFileSync(beside))
const agentBuild = digest.digest('hex').slice(0, unknownBuild.length)
for (const { path, text } of outputFiles)
  writeFileSync(path, path === bundle.path ? source.replaceAll(unknownBuild, agentBuild) : text)
