import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fault, HostConfiguration, secretFiles } from '@floe/domain'

export type AgentInstallation = HostConfiguration & {
  /** FLOE_HOME */
  home: string
  /** The agent's own state: tasks, instances, telemetry. */
  stateDirectory: string
  /** PEM of the installation's authority. */
  authority: string
  /** The file of the agent's certificate and key. */
  identityFile: string
}

/** Reads config.json and the agent's secrets below FLOE_HOME; throws a fault that names the file that is wrong. */
export function readInstallation(home: string): AgentInstallation {
  const read = (path: string) => {
    try {
      return readFileSync(path, 'utf8')
    } catch (error) {
      throw fault('agent.installation_unreadable', `could not read file "${path}"`, {
        detail: error instanceof Error ? error.message : String(error),
        hint: 'The file is written by "./floe up", and on another host by "./floe agent enrol".',
        cause: error,
      })
    }
  }
  const path = join(home, 'config.json')
  const text = read(path)
  let config: unknown
  try {
    config = JSON.parse(text)
  } catch (error) {
    throw fault('agent.installation_invalid', `file "${path}" is not valid JSON`, { cause: error })
  }
  const parsed = HostConfiguration.safeParse(config)
  if (!parsed.success)
    throw fault('agent.installation_invalid', `file "${path}" does not hold an installation`, {
      detail: parsed.error.issues.map((i) => `${i.path.join('.')}: ${i.message}`).join('; '),
      cause: parsed.error,
    })
  const secret = (name: string) => join(home, 'secrets', name)
  return {
    ...parsed.data,
    home,
    stateDirectory: join(home, 'agent'),
    authority: read(secret(secretFiles.authority)),
    identityFile: secret(secretFiles.agentIdentity),
  }
}
