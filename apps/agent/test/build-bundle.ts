import { join } from 'node:path'
import { agentBundleForSuite } from '@floe/testkit'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  interface ProvidedContext {
    /** The agent as it ships, built from the sources under test. */
    bundle: string
  }
}

export default function setup(project: TestProject): () => void {
  const { bundle, remove } = agentBundleForSuite(join(import.meta.dirname, '..'))
  project.provide('bundle', bundle)
  return remove
}
