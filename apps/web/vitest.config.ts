import { defineConfig } from 'vitest/config'

export default defineConfig({
  resolve: { alias: { '@/': `${import.meta.dirname}/src/` } },
  test: { include: ['src/**/*.test.{ts,tsx}'], testTimeout: 30_000, hookTimeout: 60_000 },
})
