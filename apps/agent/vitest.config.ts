import { readFileSync } from 'node:fs'
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config'

const common: TestProjectInlineConfiguration = {
  plugins: [
    {
      name: 'text-files',
      enforce: 'pre',
      // as in the bundle: such a file is its text
      load(id) {
        return /\.(sql|service)$/.test(id)
          ? `export default ${JSON.stringify(readFileSync(id, 'utf8'))}`
          : null
      },
    },
  ],
}
const patience = { testTimeout: 120_000, hookTimeout: 180_000 }

/** What counts transactions by the second: it runs alone, after the others. */
const timed = ['test/telemetry.test.ts']

const beside = {
  ...patience,
  // they wait twice as long as they compute, most with engines and an agent of their own
  maxWorkers: 3,
  sequence: { groupOrder: 0 },
  // no file changes a module that another one sees: a worker loads them once
  isolate: false,
}

export default defineConfig({
  test: {
    globalSetup: ['test/build-bundle.ts'],
    projects: [
      { ...common, test: { ...beside, name: 'beside', include: ['test/**/*.test.ts'], exclude: timed } },
      { ...common, test: { ...beside, name: 'code', include: ['src/**/*.test.ts'] } },
      {
        ...common,
        test: { ...patience, name: 'timed', include: timed, maxWorkers: 1, sequence: { groupOrder: 1 } },
      },
    ],
  },
})
