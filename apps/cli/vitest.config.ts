import { defineConfig } from 'vitest/config'

/** What puts doubles in the place of modules. */
const mocking = ['host-check', 'setting'].map((name) => `src/command/${name}.test.ts`)

export default defineConfig({
  test: {
    projects: [
      { test: { name: 'mocking', include: mocking } },
      // no file changes a module that another one sees: a worker loads them once
      { test: { name: 'code', include: ['src/**/*.test.ts'], exclude: mocking, isolate: false } },
    ],
  },
})
