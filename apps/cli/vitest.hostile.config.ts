import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** The same order in every run, whatever failed or took long in the last one: some attacks leave sign-ins limited for a while. */
class ByName extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return files.toSorted((a, b) => a.moduleId.localeCompare(b.moduleId))
  }
}

// one real installation for all; the attackers take turns, and whoever breaks it is found at the end
export default defineConfig({
  test: {
    include: ['hostile/**/*.test.ts'],
    globalSetup: ['hostile/installation-under-attack.ts'],
    fileParallelism: false,
    sequence: { shuffle: false, sequencer: ByName },
    testTimeout: 240_000,
    hookTimeout: 900_000,
    bail: 0,
    // an attack that turns against the attacker must not take the machine with it
    execArgv: ['--max-old-space-size=1024'],
  },
})
