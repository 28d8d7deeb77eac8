import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fault, InstanceId, InstanceName } from '@floe/domain'
import { z } from 'zod'
import { replaceFile, syncDirectory } from '../host/durable-files'
import { isNoRoom } from '../host/no-room'
import type { Problems } from '../problems'

/**
 * What the agent knows of an instance by itself. `expected` is what was last ordered and decides whether a missing
 * process is a stop or a crash; it is written before the order is carried out.
 */
export const RegisteredInstance = z.object({
  version: z.literal(1),
  instanceId: InstanceId,
  name: InstanceName,
  port: z.number().int(),
  enginePrefix: z.string(),
  expected: z.enum(['creating', 'stopped', 'running', 'deleting']),
  /** Password of the agent's own role `floe`. */
  agentPassword: z.string(),
  /** Password that it replicates with from other members; made when it is first needed. */
  replicationPassword: z.string().optional(),
  /** Password that it asks other members for pages with. */
  repairPassword: z.string().optional(),
  createdAt: z.number(),
})
export type RegisteredInstance = z.infer<typeof RegisteredInstance>

/** The instances of this host, one file each. A port belongs to an instance for as long as its file exists. */
export class InstanceRegistry {
  readonly #directory: string
  readonly #problems: Problems | undefined
  readonly #instances = new Map<string, RegisteredInstance>()
  readonly #unstored = new Set<string>()

  constructor(stateDirectory: string, problems?: Problems) {
    this.#directory = join(stateDirectory, 'instances')
    this.#problems = problems
    mkdirSync(this.#directory, { recursive: true, mode: 0o700 })
    for (const file of readdirSync(this.#directory)) {
      if (!file.endsWith('.json')) {
        if (file.endsWith('.tmp')) rmSync(join(this.#directory, file), { force: true })
        continue
      }
      const path = join(this.#directory, file)
      const parsed = RegisteredInstance.safeParse(JSON.parse(readFileSync(path, 'utf8')))
      if (!parsed.success)
        throw fault('agent.registry_invalid', `file "${path}" does not hold an instance`, {
          cause: parsed.error,
        })
      this.#instances.set(parsed.data.instanceId, parsed.data)
    }
  }

  list(): RegisteredInstance[] {
    return [...this.#instances.values()].sort((a, b) => a.createdAt - b.createdAt)
  }

  find(instanceId: string): RegisteredInstance | undefined {
    return this.#instances.get(instanceId)
  }

  /** The instance, or the fault that a caller gets for one that this host does not have. */
  get(instanceId: string): RegisteredInstance {
    const instance = this.#instances.get(instanceId)
    if (!instance)
      throw fault('instance.not_found', `instance "${instanceId}" does not exist on this host`, {
        hint: 'It may have been deleted, or lie on another host.',
      })
    return instance
  }

  /** Registers or replaces an instance durably. A name or a port of another instance is refused. */
  put(instance: RegisteredInstance): void {
    for (const other of this.#instances.values()) {
      if (other.instanceId === instance.instanceId) continue
      if (other.name === instance.name)
        throw fault('instance.name_taken', `instance "${instance.name}" already exists on this host`)
      if (other.port === instance.port)
        throw fault('instance.port_taken', `port ${instance.port} belongs to instance "${other.name}"`)
    }
    this.#store(instance)
    this.#instances.set(instance.instanceId, instance)
  }

  #store(instance: RegisteredInstance): void {
    replaceFile(this.#path(instance.instanceId), `${JSON.stringify(instance, null, 2)}\n`)
    this.#stored(instance.instanceId)
  }

  #stored(instanceId: string): void {
    if (this.#unstored.delete(instanceId) && this.#unstored.size === 0)
      this.#problems?.end('instances-not-stored')
  }

  /**
   * Changes what is known of an instance. On a full disk the change holds in memory until there is room: an instance can
   * be stopped and deleted then, which is what makes room. An agent that is killed before goes by what it sees instead.
   */
  update(instanceId: string, change: Partial<RegisteredInstance>): RegisteredInstance {
    const instance = { ...this.get(instanceId), ...change }
    try {
      this.put(instance)
    } catch (error) {
      if (!isNoRoom(error)) throw error
      this.#instances.set(instanceId, instance)
      this.#unstored.add(instanceId)
      this.#problems?.begin('instances-not-stored', {
        code: 'agent.instances_not_stored',
        message: 'could not store what was ordered of instances',
        detail: `The file system of "${this.#directory}" is full.`,
        hint: 'It holds in memory until there is room; free space there.',
      })
    }
    return instance
  }

  /** Tries again to store what did not fit. */
  storeAgain(): void {
    for (const instanceId of [...this.#unstored]) {
      const instance = this.#instances.get(instanceId)
      try {
        if (instance) this.#store(instance)
      } catch {
        return
      }
    }
  }

  remove(instanceId: string): void {
    const path = this.#path(instanceId)
    if (existsSync(path)) {
      rmSync(path)
      syncDirectory(this.#directory)
    }
    this.#instances.delete(instanceId)
    this.#stored(instanceId)
  }

  #path(instanceId: string): string {
    return join(this.#directory, `${instanceId}.json`)
  }
}
