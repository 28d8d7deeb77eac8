import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    globalSetup: ['src/testing/engine-for-suite.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
})
