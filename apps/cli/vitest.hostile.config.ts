import { defineConfig } from 'vitest/config'

// one real installation for all; the attackers take turns, and whoever breaks it is found at the end
export default defineConfig({
  test: {
    include: ['hostile/**/*.test.ts'],
    globalSetup: ['hostile/installation-under-attack.ts'],
    fileParallelism: false,
    sequence: { shuffle: false },
    testTimeout: 240_000,
    hookTimeout: 900_000,
    bail: 0,
    // an attack that turns against the attacker must not take the machine with it
    execArgv: ['--max-old-space-size=1024'],
  },
})
