import { join } from 'node:path'
import { HostConfiguration, secretFiles } from '@floe/domain'
import { readConfigurationFile, readSecretFile } from '@floe/host/configuration'

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
  const hint = 'The file is written by "./floe up", and on another host by "./floe agent enrol".'
  const secret = (name: string) => join(home, 'secrets', name)
  return {
    ...readConfigurationFile(join(home, 'config.json'), HostConfiguration, hint),
    home,
    stateDirectory: join(home, 'agent'),
    authority: readSecretFile(secret(secretFiles.authority), hint),
    identityFile: secret(secretFiles.agentIdentity),
  }
}
