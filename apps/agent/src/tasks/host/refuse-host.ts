import { FaultError, noSystemd, notAccepted, notPackaged } from '@floe/domain'
import { hasSystemd } from '../../host/dpkg'
import { acceptsPackages } from '../../host/installed-packages'
import type { AgentInstallation } from '../../installation'

/** Refuses to take packages where there are none to replace, nothing could install them, or root has not allowed it. */
export function refuseHost({ hostName }: AgentInstallation, packaged: boolean): void {
  if (!packaged || process.getuid?.() !== 0) throw new FaultError(notPackaged(hostName))
  if (!hasSystemd()) throw new FaultError(noSystemd(hostName))
  if (!acceptsPackages()) throw new FaultError(notAccepted(hostName))
}
