import { defineConfig } from 'vitest/config'

export default defineConfig({
  resolve: { alias: { '@/': `${import.meta.dirname}/src/` } },
  test: {
    include: ['src/**/*.test.{ts,tsx}'],
    // one engine for all files; those that need a control database make one of their own on it
    globalSetup: ['../../packages/db/src/testing/engine-for-suite.ts'],
    // no file changes a module that another one sees: they are loaded once for all, which is most of the time otherwise
    isolate: false,
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
})
