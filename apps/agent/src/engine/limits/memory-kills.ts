import { mkdirSync, readFileSync } from 'node:fs'
import { uptime } from 'node:os'
import { dirname } from 'node:path'
import { MemoryKill } from '@floe/domain'
import { replaceFile } from '@floe/host/replace-file'
import { z } from 'zod'
import { lastKillIn, readKernelLog } from '../../host/kernel-log'

/** `count` is the kernel's, of a group that may be another one after a start. */
const Stored = z.object({ count: z.number().int(), last: MemoryKill.nullable() })

type Surroundings = {
  /** In the path of the group, and of no other one. */
  instanceId: string
  /** Keeps what was seen for the next agent. */
  file: string
  onError: (error: unknown) => void
  records?: () => readonly string[] | null
}

/** What the kernel counts of an instance's processes killed for want of memory, as events: when, which, why. */
export class MemoryKills {
  readonly #o: Surroundings
  #seen: z.infer<typeof Stored> | null

  constructor(o: Surroundings) {
    this.#o = o
    this.#seen = readStored(o.file)
  }

  get last(): MemoryKill | null {
    return this.#seen?.last ?? null
  }

  /** The count as it stands; null where there is no group, or it does not report it. */
  see(count: number | null): void {
    if (count === null || count === this.#seen?.count) return
    // what a group had counted before an agent first saw it may be of long ago; a smaller count is another group's, from 0 on
    const before = this.#seen === null ? count : count < this.#seen.count ? 0 : this.#seen.count
    this.#seen = { count, last: count > before ? this.#kill() : this.last }
    try {
      mkdirSync(dirname(this.#o.file), { recursive: true })
      replaceFile(this.#o.file, `${JSON.stringify(this.#seen)}\n`)
    } catch (error) {
      this.#o.onError(error)
    }
  }

  #kill(): MemoryKill {
    const told = lastKillIn((this.#o.records ?? readKernelLog)() ?? [], this.#o.instanceId)
    const at = told && Math.round(Date.now() - uptime() * 1_000 + told.uptimeMs)
    // the log may have lost this one and hold one that was reported before
    if (!told || !at || at <= (this.last?.at ?? 0)) return { at: Date.now(), process: null, cause: null }
    const process = { pid: told.pid, name: told.name.slice(0, 64) }
    return { at, process, cause: told.ownLimit ? 'limit' : 'host' }
  }
}

function readStored(file: string): z.infer<typeof Stored> | null {
  try {
    return Stored.parse(JSON.parse(readFileSync(file, 'utf8')))
  } catch {
    // none yet, or what a crash of the machine left of it: the next count is the first
    return null
  }
}
