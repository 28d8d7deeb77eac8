import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { agentStart } from '@floe/host/agent-start'
import { compileOnce } from './throwaway-agent'

/**
 * The agent as it ships, once for all files of a suite: the one that FLOE_TEST_AGENT_BUNDLE names, which `./floe test unit`
 * builds for agent and controller alike, else one that is built from `room`, the agent's. `remove` at the suite's end.
 */
export function agentBundleForSuite(room: string): { bundle: string; remove: () => void } {
  const built = process.env.FLOE_TEST_AGENT_BUNDLE
  const directory = built ? null : mkdtempSync(join(tmpdir(), 'floe-agent-bundle-'))
  const bundle = built ?? join(directory as string, 'main.js')
  const remove = () => {
    if (directory) rmSync(directory, { recursive: true, force: true })
  }
  try {
    if (directory) execFileSync(process.execPath, ['build.mjs', bundle], { cwd: room, stdio: 'inherit' })
    compileOnce(bundle, agentStart.options)
  } catch (error) {
    remove()
    throw error
  }
  return { bundle, remove }
}
