import { defineConfig } from 'vitest/config'

// each test reads a whole tree, which takes a while on a machine that is busy with engines
export default defineConfig({ test: { testTimeout: 60_000 } })
