import { join } from 'node:path'

/** Where the parts of an instance lie. One directory holds all of it. */
export type InstanceLayout = ReturnType<typeof instanceLayout>

export function instanceLayout(instancesDirectory: string, instanceId: string) {
  const directory = join(instancesDirectory, instanceId)
  const dataDirectory = join(directory, 'pgdata')
  return {
    directory,
    dataDirectory,
    logDirectory: join(directory, 'log'),
    /** What the engine prints before its own log is open; replaced at every start. */
    startLog: join(directory, 'log', 'start.log'),
    managedFile: join(dataDirectory, 'floe.conf'),
    mainFile: join(dataDirectory, 'postgresql.conf'),
    autoFile: join(dataDirectory, 'postgresql.auto.conf'),
    postmasterPid: join(dataDirectory, 'postmaster.pid'),
  }
}
