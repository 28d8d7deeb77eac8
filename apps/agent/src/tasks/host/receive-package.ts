import { BroughtPackages } from '../../host/brought-packages'
import { isPackaged } from '../../host/installed-packages'
import type { TaskBody } from '../runner/task'
import { refuseHost } from './refuse-host'

/** A piece of a package, written where only root can write: a second run finds it there. */
export const receivePackage: TaskBody<'receive-package'> = async (
  { digest, sizeBytes, offset, data },
  { installation },
) => {
  refuseHost(installation, isPackaged())
  const packages = new BroughtPackages(installation.stateDirectory)
  return {
    receivedBytes: await packages.receive({ digest, sizeBytes }, offset, Buffer.from(data, 'base64')),
  }
}
