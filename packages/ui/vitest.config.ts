import react from '@vitejs/plugin-react'
import { defineConfig } from 'vitest/config'

export default defineConfig({
  plugins: [react()],
  test: {
    environment: 'jsdom',
    // drawing a chart takes a while on a machine that is busy with engines
    testTimeout: 30_000,
    setupFiles: ['src/test-environment.ts'],
  },
})
