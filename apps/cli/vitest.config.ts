import { defineConfig } from 'vitest/config'

/** What puts doubles in the place of modules. */
const mocking = ['host-check', 'setting'].map((name) => `src/command/${name}.test.ts`)

// programs that tests start take a while on a machine that is busy with engines
const testTimeout = 30_000

export default defineConfig({
  test: {
    projects: [
      { test: { testTimeout, name: 'mocking', include: mocking } },
      // no file changes a module that another one sees: a worker loads them once
      {
        test: {
          testTimeout,
          name: 'code',
          include: ['src/**/*.test.ts'],
          exclude: mocking,
          isolate: false,
        },
      },
    ],
  },
})
