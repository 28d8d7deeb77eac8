import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type CertificateFacts, contractVersion, type Hello } from '@floe/agent-contract'
import { HostId } from '@floe/domain'
import type { AgentInstallation } from '../installation'
import { taskBodies } from '../tasks/bodies'
import { agentVersion } from '../version'

/** Answers who the agent is; capabilities are what this agent and its engine can really do. */
export function helloOf(
  installation: AgentInstallation,
  certificate: CertificateFacts,
  bootId: string,
  startedAt: number,
): Hello {
  const has = (file: string) => existsSync(join(installation.enginePrefix, file))
  return {
    contractVersion,
    agentVersion,
    hostId: HostId.parse(installation.hostId),
    hostName: installation.hostName,
    bootId,
    startedAt,
    now: Date.now(),
    capabilities: [
      'report.read',
      'telemetry.read',
      'telemetry.stream',
      'checkpoint.read',
      'setting.list',
      'setting.check',
      'certificate.renew',
      ...Object.keys(taskBodies).map((kind) => `task.${kind}`),
      ...['bulk_io', 'monitor'].filter((m) => has(`lib/postgresql/${m}.so`)).map((m) => `engine.${m}`),
    ],
    certificate,
  }
}
