import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    globalSetup: ['@floe/db/testing/engine-for-suite'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
})
