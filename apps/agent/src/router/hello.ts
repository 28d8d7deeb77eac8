import { agentProcedures, type CertificateFacts, contractVersion, type Hello } from '@floe/agent-contract'
import { HostId } from '@floe/domain'
import { builtinModules } from '../engine/libraries/builtin-modules'
import type { AgentInstallation } from '../installation'
import { taskBodies } from '../tasks/bodies'
import { agentVersion } from '../version'

/** Controllers before contract procedures were named one by one look for this word. */
const olderWords = ['certificate.renew']

/** Answers who the agent is; capabilities are what this agent and its engine can really do. */
export function helloOf(
  installation: AgentInstallation,
  certificate: CertificateFacts,
  bootId: string,
  startedAt: number,
): Hello {
  return {
    contractVersion,
    agentVersion,
    hostId: HostId.parse(installation.hostId),
    hostName: installation.hostName,
    bootId,
    startedAt,
    now: Date.now(),
    capabilities: [
      ...agentProcedures,
      ...olderWords,
      ...Object.keys(taskBodies).map((kind) => `task.${kind}`),
      ...builtinModules(installation.enginePrefix).map((module) => `engine.${module}`),
    ],
    certificate,
  }
}
