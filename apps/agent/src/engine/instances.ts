import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { removeUnfinished } from '@floe/host/replace-file'
import { waitFor } from '@floe/host/wait'
import type { EngineUser } from '../host/engine-user'
import { removeUnfinishedInTree } from '../host/owned-files'
import { Instance, type InstanceSurroundings, processesOf } from './instance'
import type { InstanceProcesses } from './process/instance-processes'
import type { RegisteredInstance } from './registry/registered-instance'

/** How often processes are looked at; a look is a read of postmaster.pid and /proc. */
const LOOK_MS = 500

/** All instances of this host. */
export class Instances {
  readonly #around: InstanceSurroundings
  readonly #instances = new Map<string, Instance>()
  /** Instances that are deleted, and whose cgroups may hold a process still. */
  readonly #leftGroups = new Set<string>()
  #timer: NodeJS.Timeout | null = null

  constructor(around: InstanceSurroundings) {
    this.#around = around
    for (const registered of around.registry.list())
      this.#instances.set(registered.instanceId, new Instance(registered, around))
  }

  /** Adopts what runs: resolves when each has been looked at and, where it is up, had time to answer. */
  async adopt(): Promise<void> {
    const all = this.list()
    for (const { layout, user } of all) {
      removeUnfinished(layout.directory)
      removeUnfinishedInTree(layout.dataDirectory, user)
    }
    await Promise.all(all.map((i) => i.look()))
    await Promise.all(all.map((i) => i.ensureServerCertificate().catch((error) => this.#failed(i, error))))
    for (const i of all) i.sampler.start()
    const connected = () => !all.some((i) => i.postmaster && i.sampler.health === 'connecting')
    await waitFor(connected, { boundMs: 2_000, everyMs: 20 })
    await Promise.all(all.map((i) => i.look()))
    this.#timer = setInterval(() => {
      this.#removeLeftGroups()
      for (const i of this.list()) {
        void i.look().catch((error) => this.#failed(i, error))
        void i.lookAtEngine().catch((error) => this.#failed(i, error))
      }
    }, LOOK_MS)
  }

  /** The user of what belongs to no instance yet. */
  get sharedUser(): EngineUser {
    return this.#around.user
  }

  list(): Instance[] {
    return [...this.#instances.values()]
  }

  /** The instance, or the fault of one that does not exist. */
  get(instanceId: string): Instance {
    const instance = this.#instances.get(instanceId)
    return (
      instance ?? (this.#around.registry.get(instanceId) && this.#add(this.#around.registry.get(instanceId)))
    )
  }

  find(instanceId: string): Instance | undefined {
    return this.#instances.get(instanceId)
  }

  /** The processes of an instance that is not registered, by what it would be registered as. */
  processesOf(registered: Pick<RegisteredInstance, 'instanceId' | 'user'>): InstanceProcesses {
    return processesOf(registered, this.#around)
  }

  /** Registers a new one; its data directory is still to be made. */
  add(registered: RegisteredInstance): Instance {
    this.#around.registry.put(registered)
    this.#leftGroups.delete(registered.instanceId)
    const instance = this.#instances.get(registered.instanceId) ?? this.#add(registered)
    this.#around.onChange()
    return instance
  }

  /** Forgets one whose directory is gone, with its telemetry; its port is free again. */
  remove(instanceId: string): void {
    this.#instances.get(instanceId)?.close()
    this.#instances.get(instanceId)?.files.known.forget()
    this.#instances.delete(instanceId)
    this.#leftGroups.add(instanceId)
    rmSync(join(this.#around.installation.stateDirectory, 'telemetry', instanceId), {
      recursive: true,
      force: true,
    })
    this.#around.registry.remove(instanceId)
    this.#around.onChange()
  }

  close(): void {
    if (this.#timer) clearInterval(this.#timer)
    for (const i of this.list()) i.close()
  }

  #add(registered: RegisteredInstance): Instance {
    const instance = new Instance(registered, this.#around)
    this.#instances.set(registered.instanceId, instance)
    instance.sampler.start()
    return instance
  }

  #removeLeftGroups(): void {
    for (const id of this.#leftGroups)
      if (this.#around.limits.driver?.forget(id) !== false) this.#leftGroups.delete(id)
  }

  #failed(instance: Instance, error: unknown): void {
    this.#around.log.error('instance.look_failed', {
      instanceId: instance.instanceId,
      reason: error instanceof Error ? error.message : String(error),
    })
  }
}
