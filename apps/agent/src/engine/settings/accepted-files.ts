import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { replaceFile } from '@floe/host/replace-file'
import { z } from 'zod'
import type { FileTexts } from './tracked-files'

const Texts = z.object({
  'postgresql.conf': z.string(),
  'floe.conf': z.string(),
  'postgresql.auto.conf': z.string(),
})
const Known = z.object({
  version: z.literal(1),
  /** What the files hold as far as Floe wrote or accepted it; what differs from it is drift. */
  accepted: Texts,
  /** With these the engine last became ready; what a restart that fails goes back to. Null until it has been seen ready. */
  good: Texts.nullable(),
})

/** What an agent remembers of an instance's files of settings, in a file of its own. */
export class AcceptedFiles {
  readonly #path: string
  #known: z.infer<typeof Known> | null

  constructor(stateDirectory: string, instanceId: string) {
    const directory = join(stateDirectory, 'settings')
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    this.#path = join(directory, `${instanceId}.json`)
    this.#known = read(this.#path)
  }

  get accepted(): FileTexts | null {
    return this.#known?.accepted ?? null
  }

  get good(): FileTexts | null {
    return this.#known?.good ?? null
  }

  accept(texts: FileTexts): void {
    this.#keep({ version: 1, accepted: texts, good: this.good })
  }

  /** The engine has become ready with them; what was accepted stays. */
  proveGood(texts: FileTexts): void {
    this.#keep({ version: 1, accepted: this.accepted ?? texts, good: texts })
  }

  forget(): void {
    this.#known = null
    rmSync(this.#path, { force: true })
  }

  #keep(known: z.infer<typeof Known>): void {
    if (JSON.stringify(known) === JSON.stringify(this.#known)) return
    this.#known = known
    replaceFile(this.#path, `${JSON.stringify(known)}\n`)
  }
}

/** Null also where the file does not read: then it starts again from what is there now. */
function read(path: string): z.infer<typeof Known> | null {
  try {
    return Known.parse(JSON.parse(readFileSync(path, 'utf8')))
  } catch {
    return null
  }
}
