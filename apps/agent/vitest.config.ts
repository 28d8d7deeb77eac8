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
const patience = { testTimeout: 60_000, hookTimeout: 120_000 }

/** What counts transactions by the second: it runs alone, after the others. */
const timed = ['test/telemetry.test.ts']

export default defineConfig({
  test: {
    globalSetup: ['test/build-bundle.ts'],
    projects: [
      {
        ...common,
        test: {
          ...patience,
          name: 'beside',
          include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
          exclude: timed,
          // they wait twice as long as they compute, each with engines and an agent of its own
          maxWorkers: 3,
          sequence: { groupOrder: 0 },
        },
      },
      {
        ...common,
        test: { ...patience, name: 'timed', include: timed, maxWorkers: 1, sequence: { groupOrder: 1 } },
      },
    ],
  },
})
