import { checkHost } from '../../host/host-check'
import type { TaskBody } from '../runner/task'

/** The machine, with the file systems that hold the agent's state and its instances. */
export const checkTheHost: TaskBody<'check-host'> = (_task, { installation, signal }) =>
  checkHost({ paths: [installation.stateDirectory, installation.instancesDirectory], signal })
