import { defineConfig } from 'vitest/config'

const patience = { testTimeout: 60_000, hookTimeout: 60_000 }

/** What asserts how long something takes: it has the machine for itself, after the others. */
const timed = [
  'automatic-failover',
  'cluster',
  'failover-proof',
  'observe/host-lane',
  'observe/observation',
  'real-agent',
  'several-hosts',
  'survival',
  'two-controllers',
].map((name) => `src/${name}.test.ts`)

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
          // they wait more than they compute, each on hosts and a control database of its own
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
