import { defineConfig } from 'vitest/config'

const patience = { testTimeout: 60_000, hookTimeout: 60_000 }

/** What asserts moments within a second: it runs alone, after the others. */
const timed = ['observe/host-lane', 'real-agent'].map((name) => `src/${name}.test.ts`)

export default defineConfig({
  test: {
    globalSetup: ['@floe/db/testing/engine-for-suite', 'src/testing/bundles-for-suite.ts'],
    projects: [
      {
        test: {
          ...patience,
          name: 'beside',
          include: ['src/**/*.test.ts'],
          exclude: timed,
          // each has up to three hosts, their instances and a control database: with three at once, beside the journeys
          // (and 24 instances that these left running then), hosts missed the five seconds they have for an answer
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...patience,
          name: 'timed',
          include: timed,
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
})
