import { execFile } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { agentStart } from '@floe/host/agent-start'
import { compileOnce } from '@floe/testkit'
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
const run = promisify(execFile)

/** Vitest's global set-up: agent and controller are built once for all files of a suite. */
export default async function bundlesForSuite(project: TestProject) {
  // in the room, so that the packages that stay outside the controller's bundle are found as from dist/main.js
  const directory = join(room, 'dist', `test-${process.pid}`)
  const build = async (of: string, name: string) => {
    const path = join(directory, name)
    await run(process.execPath, ['build.mjs', path], { cwd: of })
    return path
  }
  const [agent, controller] = await Promise.all([
    build(join(room, '../agent'), 'agent.js'),
    build(room, 'controller.js'),
  ])
  compileOnce(agent, agentStart.options)
  compileOnce(controller, [])
  project.provide('agentBundle', agent)
  project.provide('controllerBundle', controller)
  return () => rmSync(directory, { recursive: true, force: true })
}
