import {
  closeSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { fault, PACKAGES_MAX } from '@floe/domain'
import { sha256OfFile } from '@floe/host/regular-file'
import { syncDirectory } from '@floe/host/replace-file'

const WHOLE = '.deb'
const PART = '.part'

type Brought = { digest: string; sizeBytes: number }

/**
 * The directory in which packages lie that a console has brought, until dpkg has taken them. It is in the agent's state, which
 * nobody but root can reach, so what was checked there is what dpkg reads.
 */
export class BroughtPackages {
  readonly #directory: string

  constructor(stateDirectory: string) {
    this.#directory = join(stateDirectory, 'packages')
  }

  /** Where dpkg's words are kept while it works for an upgrade. */
  logOf(upgradeId: string): string {
    return join(this.#directory, `${upgradeId}.log`)
  }

  fileOf(digest: string): string {
    return join(this.#directory, `${digest}${WHOLE}`)
  }

  /**
   * Adds a piece where it follows on what is there, and answers how many bytes are there then; any other piece changes nothing.
   * What has its whole size becomes a package if its digest is right, and is removed if it is not: `package.other_digest`.
   */
  async receive({ digest, sizeBytes }: Brought, offset: number, bytes: Buffer): Promise<number> {
    this.#open()
    if (this.#sizeOf(this.fileOf(digest)) === sizeBytes) return sizeBytes
    const part = join(this.#directory, `${digest}${PART}`)
    if (this.#sizeOf(part) === null) this.#makeRoom()
    // root's alone from its first moment on; O_NOFOLLOW is not needed where nobody else can put a link
    const file = openSync(part, 'a', 0o600)
    let there: number
    try {
      there = fstatSync(file).size
      if (offset !== there || bytes.length === 0 || there + bytes.length > sizeBytes) return there
      for (let done = 0; done < bytes.length; ) done += writeSync(file, bytes, done)
      there += bytes.length
      if (there < sizeBytes) return there
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    if ((await sha256OfFile(part)) !== digest) {
      rmSync(part)
      throw otherDigest(digest)
    }
    renameSync(part, this.fileOf(digest))
    syncDirectory(this.#directory)
    return there
  }

  /** That a package is here as it was named: its size, its digest, and nobody's but root's. */
  async verify({ digest, sizeBytes }: Brought): Promise<string> {
    this.#open()
    const path = this.fileOf(digest)
    const seen = lstatSync(path, { throwIfNoEntry: false })
    if (!seen)
      throw fault('package.not_here', 'a package has not been brought to the host', {
        detail: `Of the one with sha256 ${digest} nothing is there, or a part.`,
      })
    if (!isOwn(seen) || !seen.isFile() || seen.nlink !== 1) throw notOwn(path)
    if (seen.size !== sizeBytes || (await sha256OfFile(path)) !== digest) throw otherDigest(digest)
    return path
  }

  /** Takes everything away: it has been installed, or will not be. */
  remove(): void {
    rmSync(this.#directory, { recursive: true, force: true })
  }

  #open(): void {
    mkdirSync(this.#directory, { recursive: true, mode: 0o700 })
    const seen = lstatSync(this.#directory)
    if (!isOwn(seen) || !seen.isDirectory()) throw notOwn(this.#directory)
  }

  /** Of packages that an upgrade left which was given up, only so many stay. */
  #makeRoom(): void {
    const packages = readdirSync(this.#directory).filter(
      (name) => name.endsWith(WHOLE) || name.endsWith(PART),
    )
    if (packages.length < PACKAGES_MAX) return
    const age = (name: string) => lstatSync(join(this.#directory, name)).mtimeMs
    const [oldest] = packages.sort((a, b) => age(a) - age(b))
    if (oldest) rmSync(join(this.#directory, oldest))
  }

  #sizeOf(path: string): number | null {
    return lstatSync(path, { throwIfNoEntry: false })?.size ?? null
  }
}

/** Root's, or who this agent runs as, and writable for nobody else. */
const isOwn = ({ uid, mode }: { uid: number; mode: number }) =>
  uid === process.getuid?.() && (mode & 0o022) === 0

const notOwn = (path: string) =>
  fault('package.not_own', 'another user could have changed a package', {
    detail: `"${path}" is not the agent’s alone.`,
    hint: 'Find out who made it, and remove it.',
  })

const otherDigest = (digest: string) =>
  fault('package.other_digest', 'a package is not what was ordered', {
    detail: `Its sha256 is not ${digest}. Nothing was installed.`,
    hint: 'Upgrade the host again with the packages.',
  })
