import { readFileSync } from 'node:fs'
import { defineConfig } from 'vitest/config'

export default defineConfig({
  plugins: [
    {
      name: 'sql-text',
      enforce: 'pre',
      // as in the bundle: an SQL file is its text
      load(id) {
        return id.endsWith('.sql') ? `export default ${JSON.stringify(readFileSync(id, 'utf8'))}` : null
      },
    },
  ],
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    globalSetup: ['test/build-bundle.ts'],
    // engines and agents of several files at once would only measure each other
    fileParallelism: false,
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
})
