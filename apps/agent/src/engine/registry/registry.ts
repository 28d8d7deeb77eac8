import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fault, InstanceId, toFault } from '@floe/domain'
import type { Log } from '@floe/host/log'
import { replaceFile, syncDirectory } from '@floe/host/replace-file'
import { isNoRoom } from '../../host/no-room'
import type { Problems } from '../../problems'
import { RegisteredInstance } from './registered-instance'
import { RegistrationCopies } from './registration-copy'

export type RegistryParts = {
  stateDirectory: string
  instancesDirectory: string
  hostId: string
  problems: Problems
  log: Pick<Log, 'warn' | 'error'>
}

/**
 * The instances of this host, one file each. A port belongs to an instance for as long as its file exists. A file that
 * cannot be read is put aside in `unreadable/`, and no other instance suffers from it. What is missing here, of one
 * instance or of all, is read back from the copies in the instances' directories.
 */
export class InstanceRegistry {
  readonly #directory: string
  readonly #unreadable: string
  readonly #problems: Problems
  readonly #log: RegistryParts['log']
  readonly #copies: RegistrationCopies
  readonly #instances = new Map<string, RegisteredInstance>()
  readonly #unstored = new Set<string>()
  readonly #uncopied = new Set<string>()

  constructor(parts: RegistryParts) {
    this.#directory = join(parts.stateDirectory, 'instances')
    this.#unreadable = join(this.#directory, 'unreadable')
    this.#problems = parts.problems
    this.#log = parts.log
    this.#copies = new RegistrationCopies(parts)
    mkdirSync(this.#directory, { recursive: true, mode: 0o700 })
    for (const file of readdirSync(this.#directory))
      if (file.endsWith('.json')) this.#load(file)
      else if (file.endsWith('.tmp')) rmSync(join(this.#directory, file), { force: true })
    this.#readBack()
    for (const instance of this.#instances.values()) this.#copy(instance)
  }

  #load(file: string): void {
    const path = join(this.#directory, file)
    try {
      const instance = RegisteredInstance.parse(JSON.parse(readFileSync(path, 'utf8')))
      if (file !== `${instance.instanceId}.json`)
        throw fault('agent.registry_invalid', `it holds instance ${instance.instanceId}`)
      this.#instances.set(instance.instanceId, instance)
    } catch (error) {
      mkdirSync(this.#unreadable, { recursive: true, mode: 0o700 })
      const aside = join(this.#unreadable, `${Date.now()}-${file}`)
      renameSync(path, aside)
      syncDirectory(this.#directory)
      this.#log.error('registration.unreadable', { path: aside, reason: toFault(error).message })
    }
  }

  /** Registers again what only its copy records, and reports what nothing records. */
  #readBack(): void {
    const refusals = new Map<string, string>()
    for (const instanceId of this.#copies.list()) {
      if (this.#instances.has(instanceId)) continue
      try {
        const instance = this.#copies.read(instanceId)
        if (!instance) continue
        this.put(instance)
        this.#log.warn('registration.read_back', { instanceId, name: instance.name, port: instance.port })
      } catch (error) {
        const { message, detail } = toFault(error)
        refusals.set(instanceId, [message, detail].filter(Boolean).join(': '))
        this.#log.error('registration.not_read_back', { instanceId, reason: refusals.get(instanceId) })
      }
    }
    for (const [instanceId, files] of this.#putAside()) {
      if (this.#instances.has(instanceId)) continue
      const refusal = refusals.get(instanceId) ?? 'Its directory holds no copy of the registration.'
      refusals.delete(instanceId)
      this.#tellLost(instanceId, `The file was put aside as "${files.at(-1)}". ${refusal}`)
    }
    for (const [instanceId, refusal] of refusals)
      this.#tellLost(instanceId, `The agent's state does not name it. ${refusal}`)
  }

  /** Files that were put aside, by the id of their instance, newest last. */
  #putAside(): Map<string, string[]> {
    const found = new Map<string, string[]>()
    if (!existsSync(this.#unreadable)) return found
    for (const name of readdirSync(this.#unreadable).sort()) {
      const instanceId = /^\d+-(.+)\.json$/.exec(name)?.[1]
      if (!instanceId) continue
      found.set(instanceId, [...(found.get(instanceId) ?? []), join(this.#unreadable, name)])
    }
    return found
  }

  #tellLost(instanceId: string, detail: string): void {
    this.#problems.begin(
      `registration-lost:${instanceId}`,
      {
        code: 'agent.registration_lost',
        message: `could not read the registration of instance ${instanceId}`,
        detail,
        hint: 'The engine is not touched. Have the agent take it over again: "./floe instance adopt" with its name.',
      },
      InstanceId.safeParse(instanceId).success ? instanceId : null,
    )
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

  /**
   * The copy of a registration in the instance's directory; null where there is none. Throws for one that is not believed,
   * and of an instance that was being made or deleted.
   */
  readCopy(instanceId: InstanceId): RegisteredInstance | null {
    return this.#copies.read(instanceId)
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
    this.#problems.end(`registration-lost:${instance.instanceId}`)
  }

  #store(instance: RegisteredInstance): void {
    replaceFile(this.#path(instance.instanceId), `${JSON.stringify(instance, null, 2)}\n`)
    this.#stored(instance.instanceId)
    this.#copy(instance)
  }

  /** The registration counts without its copy: one that could not be written is tried again. */
  #copy(instance: RegisteredInstance): void {
    try {
      this.#copies.write(instance)
      this.#uncopied.delete(instance.instanceId)
    } catch (error) {
      if (!this.#uncopied.has(instance.instanceId))
        this.#log.warn('registration.not_copied', { instanceId: instance.instanceId, reason: String(error) })
      this.#uncopied.add(instance.instanceId)
    }
  }

  #stored(instanceId: string): void {
    if (this.#unstored.delete(instanceId) && this.#unstored.size === 0)
      this.#problems.end('instances-not-stored')
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
      this.#problems.begin('instances-not-stored', {
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
    for (const instanceId of [...this.#uncopied]) {
      const instance = this.#instances.get(instanceId)
      if (instance) this.#copy(instance)
      else this.#uncopied.delete(instanceId)
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
