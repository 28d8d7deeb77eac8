import { readFileSync, statSync } from 'node:fs'

/**
 * Certificate and key of one process in one PEM file, which is replaced whole when they are renewed. Reading looks at the
 * file's time first, so that it may be asked before every call.
 */
export class IdentityFile {
  readonly path: string
  #seen = ''
  #text = ''

  constructor(path: string) {
    this.path = path
  }

  /** The newest text. Throws where the file cannot be read. */
  read(): string {
    const { ino, size, mtimeMs } = statSync(this.path)
    const seen = `${ino} ${size} ${mtimeMs}`
    if (seen !== this.#seen) {
      this.#text = readFileSync(this.path, 'utf8')
      this.#seen = seen
    }
    return this.#text
  }
}
