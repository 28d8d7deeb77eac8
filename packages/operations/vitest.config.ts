import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    globalSetup: ['@floe/db/testing/engine-for-suite'],
    // no file changes a module that another one sees: they are loaded once for all, which is most of the time otherwise
    isolate: false,
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
})
