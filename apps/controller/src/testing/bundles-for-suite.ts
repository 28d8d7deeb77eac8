import { execFile } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { agentBundleForSuite, compileOnce } from '@floe/testkit'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  interface ProvidedContext {
    /** The agent as it ships, built from the sources under test. */
    agentBundle: string
    /** The controller likewise. */
    controllerBundle: string
  }
}

const room = join(import.meta.dirname, '../..')

/** Vitest's global set-up: agent and controller are built once for all files of a suite. */
export default async function bundlesForSuite(project: TestProject) {
  // in the room, so that the packages that stay outside the controller's bundle are found as from dist/main.js
  const directory = join(room, 'dist', `test-${process.pid}`)
  const controller = join(directory, 'controller.js')
  const agent = agentBundleForSuite(join(room, '../agent'))
  await promisify(execFile)(process.execPath, ['build.mjs', controller], { cwd: room })
  compileOnce(controller, [])
  project.provide('agentBundle', agent.bundle)
  project.provide('controllerBundle', controller)
  return () => {
    agent.remove()
    rmSync(directory, { recursive: true, force: true })
  }
}
