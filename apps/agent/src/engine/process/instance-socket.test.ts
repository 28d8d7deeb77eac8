import {
  chownSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { makeScratchDirectory } from '@floe/testkit'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { InstanceSocket } from './instance-socket'

/** The instance's user, and the one that all engines of an earlier version ran as. */
const OWN = 2_000_011
const SHARED = 2_000_012
const as = (uid: number) => ({ name: String(uid), uid, gid: uid })

describe.runIf(process.getuid?.() === 0)('the directory of an instance’s socket', () => {
  const scratch = makeScratchDirectory('instance-socket')
  afterAll(() => scratch.remove())
  let round = 0
  let shared = ''
  let vault = ''
  beforeEach(() => {
    shared = join(scratch.path, `shared-${++round}`)
    vault = join(scratch.path, `vault-${round}`)
    // as an earlier version left it: the engines' user could put anything under any name
    mkdirSync(shared)
    chownSync(shared, SHARED, SHARED)
    mkdirSync(vault, { mode: 0o700 })
    writeFileSync(join(vault, 'secret'), 'canary', { mode: 0o600 })
  })
  const socket = () =>
    new InstanceSocket(shared, { instanceId: '00000000-0000-4000-8000-0123456789ab', port: 5432 })
  const made = () => {
    const { uid, mode } = lstatSync(socket().directory)
    return [uid, (mode & 0o170000) === 0o040000, mode & 0o777]
  }

  test('is its own, below one of root’s, with a link to the socket', async () => {
    await socket().prepare(as(OWN))
    expect(statSync(shared).uid).toBe(0)
    expect(made()).toEqual([OWN, true, 0o755])
    expect(readlinkSync(join(shared, '.s.PGSQL.5432'))).toBe('0123456789ab/.s.PGSQL.5432')
    writeFileSync(join(socket().directory, 'kept'), '')
    await socket().prepare(as(OWN))
    expect(statSync(join(socket().directory, 'kept')).isFile()).toBe(true)
  })

  test.each(['secret', '.'])('a link to %s in its place leads root nowhere', async (name) => {
    const target = join(vault, name)
    const { mode, uid } = statSync(target)
    symlinkSync(target, socket().directory)
    await socket().prepare(as(OWN))
    expect(statSync(target)).toMatchObject({ mode, uid })
    expect(made()).toEqual([OWN, true, 0o755])
  })

  test('what another user made there goes, whatever is in it', async () => {
    for (const path of [socket().directory, join(shared, '.s.PGSQL.5432')]) {
      mkdirSync(path)
      symlinkSync(vault, join(path, 'link'))
      for (const it of [path, join(path, 'link')]) lchownSync(it, SHARED, SHARED)
    }
    await socket().prepare(as(OWN))
    expect(made()).toEqual([OWN, true, 0o755])
    expect(lstatSync(join(shared, '.s.PGSQL.5432')).isSymbolicLink()).toBe(true)
    expect(statSync(join(vault, 'secret')).mode & 0o777).toBe(0o600)
  })
})
