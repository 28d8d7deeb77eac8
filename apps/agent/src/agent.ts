import { chmodSync, mkdirSync } from 'node:fs'
import type { AgentHandlers } from '@floe/agent-contract'
import { bootUnitOf } from '@floe/domain'
import type { Log } from '@floe/host/log'
import { Flashbacks } from './engine/flashback/flashbacks'
import { Instances } from './engine/instances'
import { buildOf } from './engine/process/build'
import { InstanceRegistry } from './engine/registry/registry'
import { removeRestorePlaces, restorePlacesIn } from './engine/restore/restore-place'
import { removeSharedTrials } from './engine/settings/trial-place'
import { findEngineUser } from './host/engine-user'
import { becomeTheOnlyAgent } from './host/exclusive'
import { readHostFacts } from './host/facts'
import { HostUseMeter } from './host/host-use'
import { InstalledPackages } from './host/installed-packages'
import { InstanceUsers } from './host/instance-users'
import { chooseLimitDriver } from './host/limits/choose'
import { makeSharedDirectory } from './host/owned-files'
import { ProcessesOfUsers, ProcessTree } from './host/process-table'
import { chooseSupervision } from './host/supervision'
import { AgentIdentity } from './identity'
import type { AgentInstallation } from './installation'
import { collectMetrics } from './metrics/metrics'
import { formatOpenMetrics } from './metrics/open-metrics'
import { Problems } from './problems'
import { certificateHandlers } from './router/certificate'
import { checkpointHandlers } from './router/checkpoint'
import { commitModeHandlers } from './router/commit-mode'
import { databaseRoleHandlers } from './router/database-role'
import { flashbackHandlers } from './router/flashback'
import { helloOf } from './router/hello'
import { keptAsideHandlers } from './router/kept-aside'
import { listen } from './router/listen'
import { protectionHandlers } from './router/protection'
import { Reports } from './router/report'
import { settingHandlers } from './router/setting'
import { sharedServerHandlers } from './router/shared-server'
import { taskHandlers } from './router/task'
import { telemetryHandlers } from './router/telemetry'
import { taskBodies } from './tasks/bodies'
import { TaskRunner } from './tasks/runner/runner'
import { TaskStore } from './tasks/runner/store'
import { agentVersion } from './version'
import { CrashedInstances } from './watch/crash-restart'
import { IsolatedPrimaries } from './watch/isolated-primary'

/** Facts that change slowly are reported again this often. */
const FACTS_MS = 10_000
/** Tasks that ended long ago are dropped this often. */
const PRUNE_MS = 3_600_000

/** Puts the agent together and starts it; resolves with its end once it answers. */
export async function startAgent(installation: AgentInstallation, log: Log): Promise<() => Promise<void>> {
  const startedAt = Date.now()
  const identity = new AgentIdentity(installation)
  const leave = await becomeTheOnlyAgent(installation.home)
  mkdirSync(installation.stateDirectory, { recursive: true, mode: 0o700 })
  chmodSync(installation.stateDirectory, 0o700)
  const user = findEngineUser(installation.engineUser)
  const users =
    user.uid === null
      ? null
      : new InstanceUsers({ home: installation.home, range: installation.instanceUsers })
  users?.prepare().catch((error: unknown) => log.error('users.next_unknown', { reason: String(error) }))
  makeSharedDirectory(installation.socketDirectory)
  const onChange = () => reports.changed()
  const problems = new Problems(log, onChange)
  const supervision = chooseSupervision(bootUnitOf(installation))
  const limits = chooseLimitDriver(supervision.kind)
  const meter = new HostUseMeter()
  const packages = new InstalledPackages()
  const lookAtPackages = () =>
    packages.look().catch((error: unknown) => log.error('packages.unknown', { reason: String(error) }))
  await lookAtPackages()
  const facts = () =>
    readHostFacts({
      use: meter.look(),
      supervision: supervision.kind,
      ports: { ...installation.instancePorts, used: registry.list().length },
      paths: [installation.instancesDirectory, installation.home, '/'],
      separateUsers: users !== null,
      engineBuild: buildOf(installation.enginePrefix),
      packages: packages.seen,
    })
  const reports: Reports = new Reports(
    facts,
    () => instances.list(),
    () => problems.list(),
  )
  const { stateDirectory, instancesDirectory, hostId } = installation
  const registry = new InstanceRegistry({ stateDirectory, instancesDirectory, hostId, problems, log })
  const tree = new ProcessTree()
  const processes = new ProcessesOfUsers()
  const instances: Instances = new Instances({
    installation,
    registry,
    supervision,
    limits,
    user,
    tree,
    processes,
    log,
    problems,
    onChange,
  })
  await instances.adopt()
  removeSharedTrials(installation, user).catch((error: unknown) =>
    log.error('trials.not_removed', { reason: String(error) }),
  )
  // what runs again makes its own again: these are named before it begins
  for (const { layout, user: owner, instanceId } of instances.list())
    removeRestorePlaces(
      layout.directory,
      installation.socketDirectory,
      owner,
      restorePlacesIn(layout.directory),
    ).catch((error: unknown) => log.error('restore.not_removed', { instanceId, reason: String(error) }))

  const flashbacks = new Flashbacks()
  const tasks = new TaskRunner(
    new TaskStore(installation.stateDirectory, (path, reason) =>
      log.error('task.unreadable', { path, reason }),
    ),
    taskBodies,
    { instances, registry, installation, users, flashbacks },
    log,
    problems,
  )
  const isolated = new IsolatedPrimaries(instances, tasks, log)
  const handlers: AgentHandlers = {
    hello: async () => helloOf(installation, identity.facts, reports.bootId, startedAt),
    readReport: (input, signal) => {
      isolated.asked()
      return reports.read(input.after, input.waitMs, signal)
    },
    ...taskHandlers(tasks),
    ...settingHandlers(instances, installation),
    ...commitModeHandlers(instances),
    ...databaseRoleHandlers(instances),
    ...protectionHandlers(instances),
    ...flashbackHandlers(instances, flashbacks),
    ...sharedServerHandlers(instances),
    ...telemetryHandlers(instances),
    ...checkpointHandlers(instances),
    ...keptAsideHandlers(instances),
    ...certificateHandlers(identity, log),
  }
  const metrics = async () => {
    const all = instances.list()
    const sum = (of: 'taken' | 'missed') => all.reduce((n, i) => n + i.sampler[of], 0)
    const health = {
      startedAt,
      version: agentVersion,
      taken: sum('taken'),
      missed: sum('missed'),
      tasksRunning: tasks.running,
    }
    return formatOpenMetrics(await collectMetrics(all, health))
  }
  const health = () => ({
    ok: true,
    instances: instances.list().length,
    startedAt,
    problems: problems.list().map((p) => p.fault.code),
  })
  const close = await listen(installation, identity, { handlers, metrics, health }, log)
  // only the agent that got the port goes on with tasks: a second one must not
  tasks.resume()
  const crashed = new CrashedInstances(instances, tasks, log)
  if (installation.startCrashed !== false) crashed.start()
  isolated.start()
  const telling = setInterval(() => {
    registry.storeAgain()
    void lookAtPackages().then(onChange)
  }, FACTS_MS)
  const pruning = setInterval(() => tasks.prune(), PRUNE_MS)
  log.info('agent.started', {
    port: installation.agentPort,
    supervision: supervision.kind,
    limits: limits.whyNot?.message ?? limits.driver?.kind,
    engineUser: user.name,
    instances: instances.list().length,
  })
  return async () => {
    clearInterval(telling)
    clearInterval(pruning)
    crashed.stop()
    isolated.stop()
    await close()
    flashbacks.downloads.close()
    instances.close()
    leave()
    log.info('agent.stopped')
  }
}
