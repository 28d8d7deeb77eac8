import type { TestProject } from 'vitest/node'
import { startTestEngine } from './control-database'

declare module 'vitest' {
  interface ProvidedContext {
    engineConnectionString: string
  }
}

/** Vitest's global set-up: one engine for all files of a suite; each file makes its own database on it. */
export default async function engineForSuite(project: TestProject) {
  const engine = await startTestEngine()
  project.provide('engineConnectionString', engine.connectionString)
  return () => engine.remove()
}
