import { join } from 'node:path'

/** Where the parts of an instance lie. One directory holds all of it. */
export type InstanceLayout = ReturnType<typeof instanceLayout>

export function instanceLayout(instancesDirectory: string, instanceId: string) {
  const directory = join(instancesDirectory, instanceId)
  return {
    directory,
    logDirectory: join(directory, 'log'),
    /** What the engine prints before its own log is open; replaced at every start. Root opens it, so it lies in root's own directory. */
    startLog: join(directory, 'start.log'),
    /** What the agent knows of it, for an agent that has lost its own state. */
    registrationCopy: join(directory, 'registration.json'),
    /** Its presence keeps the agent from starting the instance. */
    fenceFile: join(directory, 'fenced.json'),
    /**
     * Lies there from before pg_rewind changes anything until it has ended well, or a copy has replaced all. Holds the name of
     * what was kept aside before, if anything was.
     */
    rewindMark: join(directory, 'rewinding'),
    /** Password that it replicates with, for libpq. */
    passFile: join(directory, 'replication.pgpass'),
    /** Password that it asks other members for pages with, for libpq. */
    repairPassFile: join(directory, 'page-repair.pgpass'),
    /** Never there: a root certificate that libpq is told of instead of one in somebody's home. */
    noRootFile: join(directory, 'no-root.crt'),
    ...dataFiles(join(directory, 'pgdata')),
  }
}

/** The files of a data directory, which has another name while it is being made or rewound. */
export function dataFiles(dataDirectory: string) {
  return {
    dataDirectory,
    managedFile: join(dataDirectory, 'floe.conf'),
    /** What the instance's place in its cluster asks for; included by the managed file. */
    clusterFile: join(dataDirectory, 'floe.cluster.conf'),
    hbaFile: join(dataDirectory, 'pg_hba.conf'),
    /** Lines of pg_hba.conf for the members of the cluster; included by pg_hba.conf. */
    clusterHbaFile: join(dataDirectory, 'floe_hba.conf'),
    identFile: join(dataDirectory, 'pg_ident.conf'),
    clusterIdentFile: join(dataDirectory, 'floe_ident.conf'),
    /** Its presence makes the engine start as a standby, no matter what starts it. */
    standbySignal: join(dataDirectory, 'standby.signal'),
    /** Certificate and key that it serves TLS with; never another instance's. */
    certificateFile: join(dataDirectory, 'floe_server.pem'),
    /** Turns TLS on with that certificate; included by the managed file before everything else. */
    tlsFile: join(dataDirectory, 'floe.tls.conf'),
    mainFile: join(dataDirectory, 'postgresql.conf'),
    autoFile: join(dataDirectory, 'postgresql.auto.conf'),
    postmasterPid: join(dataDirectory, 'postmaster.pid'),
  }
}

/** How the directories beside a data directory are named in which a backup is restored for a moment. */
export const RESTORE_PLACE = 'restore-'
export const isRestorePlace = (name: string): boolean => /^restore-[0-9a-f]{12}$/.test(name)

/** Whether a name beside a data directory is one in which engines of the agent's own run: trials of settings, and restores. */
export const isAsideEngine = (name: string): boolean => name === 'trial' || isRestorePlace(name)
