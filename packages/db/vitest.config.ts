import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    globalSetup: ['src/testing/engine-for-suite.ts'],
    // no file changes a module that another one sees: they are loaded once for all, which is most of the time otherwise
    isolate: false,
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
})
