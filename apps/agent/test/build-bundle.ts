import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { agentStart } from '@floe/host/agent-start'
import { compileOnce } from '@floe/testkit'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  interface ProvidedContext {
    /** The agent as it ships, built from the sources under test. */
    bundle: string
  }
}

export default function setup(project: TestProject): () => void {
  const directory = mkdtempSync(join(tmpdir(), 'floe-agent-bundle-'))
  const bundle = join(directory, 'main.js')
  execFileSync(process.execPath, ['build.mjs', bundle], {
    cwd: join(import.meta.dirname, '..'),
    stdio: 'inherit',
  })
  compileOnce(bundle, agentStart.options)
  project.provide('bundle', bundle)
  return () => rmSync(directory, { recursive: true, force: true })
}
