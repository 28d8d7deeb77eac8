import { defineConfig } from 'vitest/config'

// no file changes anything that another one sees: modules are loaded once for all
export default defineConfig({ test: { isolate: false } })
