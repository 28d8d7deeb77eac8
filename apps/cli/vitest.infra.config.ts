import { defineConfig } from 'vitest/config'

// loop devices are few, and Terraform takes a core: one file after another
export default defineConfig({
  test: {
    include: ['infra/**/*.test.ts'],
    globalSetup: ['infra/built-packages.ts'],
    fileParallelism: false,
    testTimeout: 300_000,
    hookTimeout: 120_000,
    bail: 0,
  },
})
