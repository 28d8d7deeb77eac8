import { defineConfig } from 'vitest/config'

// a real installation is brought up once and the tests go through its life in order
export default defineConfig({
  test: {
    include: ['launcher/**/*.test.ts'],
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 900_000,
    bail: 0,
  },
})
