import { FaultError, noSystemd, notPackaged } from '@floe/domain'
import { hasSystemd } from '../../host/dpkg'
import type { AgentInstallation } from '../../installation'

/** Refuses to take packages where there are none to replace, or nothing that could install them. */
export function refuseHost({ hostName }: AgentInstallation, packaged: boolean): void {
  if (!packaged || process.getuid?.() !== 0) throw new FaultError(notPackaged(hostName))
  if (!hasSystemd()) throw new FaultError(noSystemd(hostName))
}
