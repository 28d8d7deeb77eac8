import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { makeScratchDirectory } from '@floe/testkit'
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest'
import { mountTmpfs, mountXfs, whyNotMounted, whyNoXfs } from '../../test/mounted-file-system'

const isRoot = process.getuid?.() === 0
/** Two users that no process and no file of this machine belongs to. */
const OWNER = 2_000_001
const OTHER = 2_000_002
const as = (uid: number) => `${uid}:${uid}`

const door = join(dirname(inject('bundle')), 'floe-tree')
/** The same without openat2(), as on a kernel before 5.6. */
const doorOfOldKernels = `${door}-old-kernel`

const scratch = makeScratchDirectory('floe-tree')
/** What nothing may touch: root's alone, beside the tree. */
const vault = join(scratch.path, 'vault')
/** The tree of the owner. */
const tree = join(scratch.path, 'tree')

type Ran = { status: number | null; stderr: string; stdout: string }

function run(args: string[], input: string | Buffer = '', program = door): Ran {
  const { status, stderr, stdout, error } = spawnSync(program, args, { input, timeout: 60_000 })
  // it may end before it has read everything
  if (error && (error as NodeJS.ErrnoException).code !== 'EPIPE') throw error
  return { status, stderr: stderr.toString(), stdout: stdout.toString() }
}
const asOwner = (...args: string[]) => run(['--as', as(OWNER), ...args])
const done = { status: 0, stderr: '' }
const refused = (name: string, verb: string, path: string) => ({
  status: 1,
  stderr: expect.stringMatching(
    new RegExp(`^floe-tree: ${name}: ${verb} "${path.replace(/[.*+?^$|()[\]{}]/g, '\\$&')}": [^\n]+\n$`),
  ),
})

/** Runs JavaScript as another user, to its end or for as long as the test needs it. */
const script = (uid: number, source: string): [string, string[], object] => [
  process.execPath,
  ['-e', `const fs = require('node:fs'), path = require('node:path'); ${source}`],
  { uid, gid: uid, cwd: '/', env: {} },
]
function runAs(uid: number, source: string): string {
  const r = spawnSync(...script(uid, source))
  if (r.status !== 0) throw new Error(r.stderr.toString())
  return r.stdout.toString()
}

function give(path: string, uid = OWNER): void {
  const r = spawnSync('chown', ['-hR', as(uid), path])
  if (r.status !== 0) throw new Error(r.stderr.toString())
}
const file = (...names: string[]) => join(tree, ...names)
const text = (path: string) => readFileSync(path, 'utf8')
const temporaries = (directory: string) => readdirSync(directory).filter((n) => n.endsWith('.tmp'))

/** All of a tree: name, kind, owner, mode and text. */
function inventory(root: string): string[] {
  const lines: string[] = []
  const walk = (path: string) => {
    const s = lstatSync(path)
    const what = s.isSymbolicLink() ? readlinkSync(path) : s.isFile() ? readFileSync(path, 'latin1') : ''
    lines.push(`${path.slice(root.length)} ${s.mode.toString(8)} ${s.uid}:${s.gid} ${what}`)
    if (s.isDirectory()) for (const name of readdirSync(path).sort()) walk(join(path, name))
  }
  walk(root)
  return lines
}
let untouched: string[]

beforeAll(() => {
  const source = join(import.meta.dirname, '../../native/floe-tree.c')
  const r = spawnSync('cc', ['-std=c11', '-DWITHOUT_OPENAT2', '-o', doorOfOldKernels, source])
  if (r.status !== 0) throw new Error(r.stderr.toString())
  chmodSync(dirname(door), 0o755)
})
afterAll(() => scratch.remove())
beforeEach(() => {
  rmSync(vault, { recursive: true, force: true })
  rmSync(tree, { recursive: true, force: true })
  mkdirSync(vault, { mode: 0o700 })
  for (let i = 0; i < 300; i++) writeFileSync(join(vault, `f${i}`), 'canary', { mode: 0o600 })
  untouched = inventory(vault)
  mkdirSync(tree, { mode: 0o700 })
  if (isRoot) chownSync(tree, OWNER, OWNER)
})

test('what is not understood ends with status 2 and says how it is called', () => {
  for (const args of [
    [],
    ['remove'],
    ['walk', tree],
    ['replace', '--mode', '0999', file('a')],
    ['replace', '--mode', '4755', file('a')],
    ['mkdir', '--inside', file('a')],
    ['--as', '1', 'remove', file('a')],
    ['--as', '-1:-1', 'remove', file('a')],
    ['--as', '4294967295:4294967295', 'remove', file('a')],
    ['rename', file('a')],
    ['clone', tree, tree],
    ['write', tree, 'a'],
    ['write', '--at', '-1', tree, 'a'],
    ['write', '--at', '99999999999999999999', tree, 'a'],
    ['write', '--at', '0', tree],
    ['replace', '--at', '0', file('a')],
    ['hand-over', '--from', '1', tree],
    ['hand-over', '--from', '0', '--to', '1:1', tree],
    ['hand-over', '--from', '1', '--to', '0:0', tree],
    ['hand-over', '--from', '1', '--to', '1:1', tree],
    ...(isRoot ? [['--as', '0:0', 'remove', file('a')]] : []),
    ...(isRoot ? [['clone', '--from', '1:1', tree, tree]] : []),
  ])
    expect(run(args), args.join(' ')).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(/^usage: floe-tree/),
    })
})

describe('as the caller', () => {
  test('every verb does its work without another user', () => {
    expect(run(['mkdir', file('d')])).toMatchObject(done)
    expect(run(['mkdir', file('d')])).toMatchObject(done)
    expect(statSync(file('d')).mode & 0o7777).toBe(0o700)
    expect(run(['replace', file('d', 'a')], 'one')).toMatchObject(done)
    expect(run(['replace', '--mode', '644', file('d', 'a')], 'two')).toMatchObject(done)
    expect([text(file('d', 'a')), statSync(file('d', 'a')).mode & 0o7777]).toEqual(['two', 0o644])
    expect(run(['rename', file('d', 'a'), file('b')])).toMatchObject(done)
    expect(text(file('b'))).toBe('two')
    expect(run(['remove', file('b')])).toMatchObject(done)
    expect(run(['remove', file('b')])).toMatchObject(done)
    expect(run(['remove', file('missing', 'too')])).toMatchObject(done)
    expect(run(['remove', '--inside', tree])).toMatchObject(done)
    expect(readdirSync(tree)).toEqual([])
    expect(run(['remove', tree])).toMatchObject(done)
    expect(existsSync(tree)).toBe(false)
  })

  test('a failure is one line that names the reason, the verb and the path, whatever is in its name', () => {
    const odd = file('a\n"b"\\\x1b')
    expect(run(['rename', odd, file('c')]).stderr).toBe(
      `floe-tree: ENOENT: rename "${tree}/a\\012\\042b\\042\\134\\033": No such file or directory\n`,
    )
    expect(run(['replace', file('no', 'such')])).toMatchObject(
      refused('ENOENT', 'replace', file('no', 'such')),
    )
    expect(run(['mkdir', `${tree}/..`])).toMatchObject(refused('EINVAL', 'mkdir', `${tree}/..`))
    writeFileSync(file('f'), '')
    expect(run(['mkdir', file('f')])).toMatchObject(refused('ENOTDIR', 'mkdir', file('f')))
    expect(run(['remove', '--inside', file('f')])).toMatchObject(refused('ENOTDIR', 'remove', file('f')))
  })

  test('a large input through a pipe arrives whole, and with a name of 255 bytes', () => {
    const name = `${'ä'.repeat(127)}x`
    const large = Buffer.alloc(3_000_001, 'abc\0')
    expect(run(['replace', file(name)], large)).toMatchObject(done)
    expect(readFileSync(file(name)).equals(large)).toBe(true)
    expect(temporaries(tree)).toEqual([])
  })

  test.each([
    ['with openat2', () => door],
    ['without openat2', () => doorOfOldKernels],
  ])('bytes are put at their place in a file below a directory, and through no link (%s)', (_, program) => {
    const write = (offset: number, path: string, bytes: string) =>
      run(['write', '--at', String(offset), tree, path], bytes, program())
    mkdirSync(file('d'))
    expect(write(4, 'd/a', 'EF')).toMatchObject(done)
    expect(write(0, 'd/a', 'abcd')).toMatchObject(done)
    expect(write(2, 'd/a', 'CD')).toMatchObject(done)
    expect(text(file('d', 'a'))).toBe('abCDEF')
    expect(lstatSync(file('d', 'a')).mode & 0o7777).toBe(0o600)
    expect(write(0, 'b', 'x')).toMatchObject(done)
    symlinkSync(join(vault, 'f0'), file('link'))
    symlinkSync(vault, file('away'))
    linkSync(join(vault, 'f1'), file('hard'))
    expect(spawnSync('mkfifo', [file('pipe')]).status).toBe(0)
    expect(write(0, 'link', 'x')).toMatchObject(refused('ELOOP', 'write', 'link'))
    expect(write(0, 'away/f0', 'x')).toMatchObject(refused('ELOOP', 'write', 'away/f0'))
    expect(write(0, 'away/new', 'x')).toMatchObject(refused('ELOOP', 'write', 'away/new'))
    expect(write(0, 'hard', 'x')).toMatchObject(refused('MISFIT', 'write', 'hard'))
    expect(write(0, 'd', 'x').status).toBe(1)
    expect(write(0, 'pipe', 'x').status).toBe(1)
    expect(write(0, '../vault/f2', 'x').status).toBe(1)
    expect(run(['write', '--at', '0', file('away'), 'f0'], 'x', program()).status).toBe(1)
    rmSync(file('hard'))
    expect(inventory(vault)).toEqual(untouched)
  })

  test('several files are written at once, each over what was there', () => {
    writeFileSync(file('b'), 'before')
    writeFileSync(file('target'), 'kept')
    symlinkSync(file('target'), file('link'))
    expect(run(['fill', tree], 'a\0one\0b\0\0link\0two\0')).toMatchObject(done)
    expect(['a', 'b', 'link', 'target'].map((name) => text(file(name)))).toEqual(['one', '', 'two', 'kept'])
    expect(lstatSync(file('a')).mode & 0o7777).toBe(0o600)
    expect(temporaries(tree)).toEqual([])
    symlinkSync(tree, file('directory'))
    expect(run(['fill', file('directory')], 'a\0three\0')).toMatchObject(
      refused('ENOTDIR', 'fill', file('directory')),
    )
    for (const wrong of [
      'a',
      'a\0',
      'a\0half',
      '\0x\0',
      '..\0x\0',
      'd/a\0x\0',
      `a\0${'x'.repeat(1 << 20)}\0`,
    ])
      expect(run(['fill', tree], wrong), wrong.slice(0, 9)).toMatchObject(refused('MISFIT', 'fill', tree))
    expect(run(['fill', tree], `${'n'.repeat(256)}\0x\0`)).toMatchObject(
      refused('ENAMETOOLONG', 'fill', tree),
    )
    expect(text(file('a'))).toBe('one')
    expect(temporaries(tree)).toEqual([])
  })

  test('an ended replacement leaves the former file and no temporary one', async () => {
    writeFileSync(file('a'), 'before')
    const child = spawn(door, ['replace', file('a')])
    child.stdin.write('half')
    await appears(() => temporaries(tree).length === 1)
    child.kill('SIGTERM')
    expect(await ended(child)).toBe(1)
    expect(readdirSync(tree)).toEqual(['a'])
    expect(text(file('a'))).toBe('before')
  })

  test('a link where a file is replaced or a directory made is not followed', () => {
    writeFileSync(file('target'), 'kept')
    symlinkSync(file('target'), file('link'))
    expect(run(['replace', file('link')], 'new')).toMatchObject(done)
    expect([text(file('target')), lstatSync(file('link')).isFile(), text(file('link'))]).toEqual([
      'kept',
      true,
      'new',
    ])
    symlinkSync(tree, file('directory'))
    expect(run(['mkdir', file('directory')])).toMatchObject(refused('ELOOP', 'mkdir', file('directory')))
    expect(run(['remove', '--inside', file('directory')])).toMatchObject(
      refused('ELOOP', 'remove', file('directory')),
    )
    expect(run(['remove', file('directory')])).toMatchObject(done)
    expect(text(file('target'))).toBe('kept')
  })

  test.each([
    ['with openat2', () => door],
    ['without openat2', () => doorOfOldKernels],
  ])('a tree of 1,000 levels, odd names and every kind of file is removed (%s)', async (_, program) => {
    // a path that long has no name: the kernel is led there step by step
    const dig = `process.chdir(${JSON.stringify(tree)}); for (let i = 0; i < 1000; i++) {
      fs.mkdirSync('d' + i, 0o700); fs.writeFileSync('f', ''); process.chdir('d' + i) }`
    runAs(isRoot ? OWNER : (process.getuid?.() as number), dig)
    for (const name of ['\n', '-rf', ' ', '*', '"', '\\', '.hidden', '...', 'x'.repeat(255), '\u0001'])
      mkdirSync(file(name))
    writeFileSync(file('-rf', 'x'.repeat(255)), '')
    symlinkSync('/', file('root'))
    symlinkSync('nowhere', file('dangling'))
    expect(spawnSync('mkfifo', [file('pipe')]).status).toBe(0)
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(file('socket'), resolve))
    expect(run(['remove', tree], '', program())).toMatchObject(done)
    server.close()
    expect(existsSync(tree)).toBe(false)
    expect(inventory(vault)).toEqual(untouched)
  })
})

describe.skipIf(!isRoot)('as the owner of a tree', () => {
  test('what is made is the owner’s', () => {
    expect(run(['--as', as(OWNER), 'replace', file('a')], 'x')).toMatchObject(done)
    expect(asOwner('mkdir', file('d'))).toMatchObject(done)
    expect(run(['--as', as(OWNER), 'fill', tree], 'b\0x\0')).toMatchObject(done)
    expect(run(['--as', as(OWNER), 'write', '--at', '0', tree, 'd/c'], 'x')).toMatchObject(done)
    expect(statSync(file('d', 'c')).uid).toBe(OWNER)
    expect(run(['--as', as(OWNER), 'write', '--at', '0', vault, 'f0'], 'x').status).toBe(1)
    for (const path of [file('a'), file('b'), file('d')]) {
      const { uid, gid } = statSync(path)
      expect([uid, gid]).toEqual([OWNER, OWNER])
    }
  })

  test('what the owner may not do is not done, though root runs it', () => {
    expect(asOwner('replace', join(vault, 'planted'))).toMatchObject(
      refused('EACCES', 'replace', join(vault, 'planted')),
    )
    const fill = (directory: string) => run(['--as', as(OWNER), 'fill', directory], 'planted\0x\0')
    expect(fill(vault)).toMatchObject(refused('EACCES', 'fill', vault))
    expect(asOwner('mkdir', join(vault, 'planted'))).toMatchObject(
      refused('EACCES', 'mkdir', join(vault, 'planted')),
    )
    expect(asOwner('remove', join(vault, 'f1'))).toMatchObject(refused('EACCES', 'remove', join(vault, 'f1')))
    expect(asOwner('remove', vault)).toMatchObject({ status: 1 })
    expect(asOwner('rename', join(vault, 'f1'), file('f1'))).toMatchObject({ status: 1 })
    symlinkSync(vault, file('link'))
    expect(asOwner('replace', file('link', 'planted'))).toMatchObject({ status: 1 })
    expect(fill(file('link'))).toMatchObject({ status: 1 })
    expect(asOwner('mkdir', file('link', 'planted'))).toMatchObject({ status: 1 })
    expect(asOwner('remove', file('link', 'f1'))).toMatchObject({ status: 1 })
    expect(asOwner('rename', file('link', 'f1'), file('f1'))).toMatchObject({ status: 1 })
    // the caller’s own descriptors and directories are no way out either
    symlinkSync('/proc/self/cwd', file('cwd'))
    expect(asOwner('mkdir', file('cwd', 'planted'))).toMatchObject({ status: 1 })
    expect(inventory(vault)).toEqual(untouched)
  })

  test('a link in place of each part of a path leads nowhere for root', () => {
    const parts = ['one', 'two', 'three']
    for (let i = 0; i < parts.length; i++) {
      rmSync(file('one'), { recursive: true, force: true })
      mkdirSync(file(...parts.slice(0, i)), { recursive: true })
      mkdirSync(join(vault, ...parts.slice(i + 1)), { recursive: true })
      symlinkSync(vault, file(...parts.slice(0, i + 1)))
      const before = inventory(vault)
      for (const verb of ['replace', 'mkdir'])
        expect(asOwner(verb, file(...parts, 'planted')), verb).toMatchObject({ status: 1 })
      expect(asOwner('remove', file(...parts, 'f1'))).toMatchObject({ status: 1 })
      expect(asOwner('rename', file(...parts, 'f1'), file('stolen'))).toMatchObject({ status: 1 })
      expect(inventory(vault)).toEqual(before)
    }
  })

  test('directories that their owner made inaccessible are removed all the same', () => {
    mkdirSync(file('a', 'b', 'c'), { recursive: true })
    writeFileSync(file('a', 'b', 'c', 'f'), '')
    give(tree)
    for (const path of [file('a', 'b', 'c'), file('a', 'b'), file('a')]) chmodSync(path, 0)
    expect(asOwner('remove', file('a'))).toMatchObject(done)
    expect(readdirSync(tree)).toEqual([])
  })

  test('an empty directory of somebody else’s goes, one with something in it stays', () => {
    mkdirSync(file('a', 'of-root'), { recursive: true })
    give(tree)
    for (const held of [[], ['f']]) {
      mkdirSync(file('a', 'of-root'), { recursive: true })
      chownSync(file('a', 'of-root'), 0, 0)
      chmodSync(file('a', 'of-root'), 0o700)
      for (const name of held) writeFileSync(file('a', 'of-root', name), '')
      expect(asOwner('remove', '--inside', file('a'))).toMatchObject(
        held.length === 0 ? done : refused('EACCES', 'remove', file('a', 'of-root')),
      )
      expect(readdirSync(file('a'))).toEqual(held.length === 0 ? [] : ['of-root'])
    }
  })

  test('a tree below a directory of root’s is emptied; that it stays is said', () => {
    const outer = join(scratch.path, 'outer')
    mkdirSync(join(outer, 'pgdata', 'base'), { recursive: true, mode: 0o700 })
    chmodSync(outer, 0o711)
    give(join(outer, 'pgdata'))
    expect(asOwner('remove', '--inside', join(outer, 'pgdata'))).toMatchObject(done)
    expect(readdirSync(join(outer, 'pgdata'))).toEqual([])
    expect(asOwner('remove', join(outer, 'pgdata'))).toMatchObject(
      refused('EACCES', 'remove', join(outer, 'pgdata')),
    )
    rmSync(outer, { recursive: true })
  })

  test('directories swapped for links while they are removed: nothing outside is touched', async () => {
    // one victim only root may change, and one that is the owner’s own: it is not reached through a link either
    const own = join(scratch.path, 'own')
    rmSync(own, { recursive: true, force: true })
    mkdirSync(own, { mode: 0o700 })
    for (let i = 0; i < 300; i++) writeFileSync(join(own, `f${i}`), 'canary')
    give(own)
    const ownBefore = inventory(own)
    for (let round = 0; round < 3; round++) {
      mkdirSync(tree, { recursive: true, mode: 0o700 })
      for (let d = 0; d < 10; d++) {
        mkdirSync(file(`d${d}`))
        for (let i = 0; i < 300; i++) writeFileSync(file(`d${d}`, `f${i}`), '')
      }
      give(tree)
      const watcher = spawn(
        ...script(
          OWNER,
          `let n = 0, swapped = 0
          process.on('SIGTERM', () => {})
          console.log('ready')
          for (;;) {
            const d = ${JSON.stringify(tree)} + '/d' + (n++ % 10)
            try {
              fs.renameSync(d, d + '.away')
              fs.symlinkSync(n % 2 ? ${JSON.stringify(vault)} : ${JSON.stringify(own)}, d)
              swapped++
              fs.unlinkSync(d)
              fs.renameSync(d + '.away', d)
            } catch { if (!fs.existsSync(${JSON.stringify(tree)})) break; else try { fs.renameSync(d + '.away', d) } catch {} }
            if (n > 5_000_000) break
          }
          console.log(swapped)`,
        ),
      ) as ChildProcess & { stdout: NodeJS.ReadableStream }
      let said = ''
      watcher.stdout.on('data', (chunk) => {
        said += chunk
      })
      await appears(() => said.includes('ready'))
      // the parent of the tree is root’s: what is inside it is what the owner can race for
      const r = run(['--as', as(OWNER), 'remove', '--inside', tree])
      expect(r).toMatchObject(done)
      rmSync(tree, { recursive: true, force: true })
      await ended(watcher)
      expect(inventory(vault)).toEqual(untouched)
      expect(inventory(own)).toEqual(ownBefore)
    }
    rmSync(own, { recursive: true })
  }, 120_000)

  test('files that somebody keeps making do not keep a tree from being removed', async () => {
    const writer = spawn(
      ...script(
        OWNER,
        `console.log('ready'); for (let i = 0; ; i++) try { fs.writeFileSync(${JSON.stringify(tree)} + '/d/f' + i, '') } catch {
           try { fs.mkdirSync(${JSON.stringify(tree)} + '/d') } catch {} ; if (!fs.existsSync(${JSON.stringify(tree)})) break }`,
      ),
    ) as ChildProcess & { stdout: NodeJS.ReadableStream }
    await new Promise((resolve) => writer.stdout.once('data', resolve))
    chownSync(scratch.path, OWNER, OWNER)
    const r = asOwner('remove', tree)
    chownSync(scratch.path, 0, 0)
    expect(r).toMatchObject(done)
    await ended(writer)
    expect(existsSync(tree)).toBe(false)
  })

  test('the owner can neither signal, stop, look into nor limit the program', async () => {
    const child = spawn(door, ['--as', as(OWNER), 'replace', file('a')])
    await appears(() => temporaries(tree).length === 1)
    const tried = JSON.parse(
      runAs(
        OWNER,
        `const pid = ${child.pid}, said = {}
        const attempt = (name, f) => { try { f(); said[name] = 'done' } catch (e) { said[name] = e.code } }
        for (const s of ['SIGTERM', 'SIGSTOP', 'SIGKILL']) attempt(s, () => process.kill(pid, s))
        attempt('memory', () => fs.openSync('/proc/' + pid + '/mem', 'r+'))
        attempt('environment', () => fs.readFileSync('/proc/' + pid + '/environ'))
        attempt('descriptors', () => fs.readdirSync('/proc/' + pid + '/fd'))
        attempt('limits', () => { if (require('child_process').spawnSync('prlimit', ['--pid', pid, '--fsize=0'],
          { env: { PATH: '/usr/bin:/bin' } }).status !== 0) throw { code: 'EPERM' } })
        console.log(JSON.stringify(said))`,
      ),
    )
    expect(tried).toEqual({
      SIGTERM: 'EPERM',
      SIGSTOP: 'EPERM',
      SIGKILL: 'EPERM',
      memory: 'EACCES',
      environment: 'EACCES',
      descriptors: 'EACCES',
      limits: 'EPERM',
    })
    // of root’s rights nothing is left in it
    const status = text(`/proc/${child.pid}/status`)
    expect(status).toMatch(new RegExp(`^Uid:\\s+0\\s+0\\s+0\\s+${OWNER}$`, 'm'))
    expect(status).toMatch(/^CapEff:\s+0+$/m)
    expect(status).toMatch(/^CapPrm:\s+0+$/m)
    expect(status).toMatch(/^Groups:\s*$/m)
    child.stdin.end('whole')
    expect(await ended(child)).toBe(0)
    expect(text(file('a'))).toBe('whole')
  })

  const noTmpfs = whyNotMounted((_, directory) => mountTmpfs(directory, 1 << 20))
  test.skipIf(noTmpfs !== null)('a full disk leaves the former file and no temporary one', () => {
    const unmount = mountTmpfs(tree, 1 << 20)
    try {
      chownSync(tree, OWNER, OWNER)
      expect(run(['--as', as(OWNER), 'replace', file('a')], 'former')).toMatchObject(done)
      expect(run(['--as', as(OWNER), 'replace', file('a')], Buffer.alloc(2 << 20))).toMatchObject(
        refused('ENOSPC', 'replace', file('a')),
      )
      expect(readdirSync(tree)).toEqual(['a'])
      expect(text(file('a'))).toBe('former')
    } finally {
      unmount()
    }
  })

  test.skipIf(noTmpfs !== null).each([
    ['with openat2', () => door],
    ['without openat2', () => doorOfOldKernels],
  ])('a mount below the tree is not entered (%s)', (_, program) => {
    mkdirSync(file('mount'))
    const unmount = mountTmpfs(file('mount'), 1 << 20)
    try {
      writeFileSync(file('mount', 'canary'), '')
      give(tree)
      const misfit = (verb: string) => refused('MISFIT', verb, file('mount'))
      expect(run(['--as', as(OWNER), 'remove', '--inside', tree], '', program())).toMatchObject(
        misfit('remove'),
      )
      expect(run(['hand-over', '--from', `${OWNER}`, '--to', as(OTHER), tree], '', program())).toMatchObject(
        misfit('hand-over'),
      )
      expect(existsSync(file('mount', 'canary'))).toBe(true)
    } finally {
      unmount()
    }
  })
})

describe.skipIf(!isRoot)('handing a tree to another user', () => {
  const handOver = (...options: string[]) =>
    run(['hand-over', '--from', `${OWNER}`, '--to', as(OTHER), ...options, tree])
  const owners = () =>
    new Set(
      inventory(scratch.path)
        .filter((l) => l.startsWith('/tree'))
        .map((l) => l.split(' ')[2]),
    )
  const fill = () => {
    mkdirSync(file('base', '5'), { recursive: true, mode: 0o700 })
    for (const name of ['PG_VERSION', 'base/5/1', 'base/5/2'])
      writeFileSync(file(name), name, { mode: 0o600 })
    give(tree)
  }

  test('every file and directory is the new user’s, with its mode and text; progress is said', () => {
    fill()
    chmodSync(file('base', '5', '1'), 0o642)
    const before = inventory(tree)
    expect(handOver('--check')).toMatchObject({ ...done, stdout: '' })
    expect(inventory(tree)).toEqual(before)
    const r = handOver()
    expect(r).toMatchObject(done)
    expect(r.stdout).toMatch(/(^|\n)done 6 of 6\n$/)
    // what anybody could write to nobody else writes to now
    const expected = before.map((line) =>
      line.replace(`${OWNER}:${OWNER}`, `${OTHER}:${OTHER}`).replace('100642', '100640'),
    )
    expect(inventory(tree)).toEqual(expected)
    // once more: nothing to do
    expect(handOver()).toMatchObject(done)
  })

  test('one file is handed over as a tree is', () => {
    writeFileSync(file('pgpass'), 'x', { mode: 0o600 })
    give(file('pgpass'))
    const path = file('pgpass')
    expect(run(['hand-over', '--from', `${OWNER}`, '--to', as(OTHER), path])).toMatchObject(done)
    expect(statSync(path).uid).toBe(OTHER)
  })

  test('a list of access rights that names the old user is taken off', () => {
    fill()
    const set = spawnSync('setfacl', ['-m', `u:${OWNER}:rwx`, file('base', '5'), file('base', '5', '1')])
    // package acl is not everywhere: the attribute itself is what setfacl writes
    if (set.error)
      for (const path of [file('base', '5'), file('base', '5', '1')]) {
        const r = spawnSync('python3', ['-c', ACL, path, `${OWNER}`])
        if (r.status !== 0) throw new Error(r.stderr.toString())
      }
    expect(handOver()).toMatchObject(done)
    const attempt = (what: string) => () => runAs(OWNER, what)
    chmodSync(tree, 0o711)
    chmodSync(file('base'), 0o711)
    expect(attempt(`fs.readFileSync(${JSON.stringify(file('base', '5', '1'))})`)).toThrow(/EACCES/)
    expect(attempt(`fs.writeFileSync(${JSON.stringify(file('base', '5', 'new'))}, '')`)).toThrow(/EACCES/)
  })

  const misfits: [string, (path: string) => void, string][] = [
    ['a symbolic link', (path) => symlinkSync(join(vault, 'f1'), path), 'is a symbolic link'],
    ['a link to a directory', (path) => symlinkSync(vault, path), 'is a symbolic link'],
    ['a pipe', (path) => spawnSync('mkfifo', [path]), 'is a pipe'],
    ['a device', (path) => spawnSync('mknod', [path, 'c', '1', '3']), 'is a device'],
    [
      'a socket',
      (path) => spawnSync('python3', ['-c', 'import socket,sys; socket.socket(1).bind(sys.argv[1])', path]),
      'is a socket',
    ],
    ['a second link to a file elsewhere', (path) => linkSync(join(vault, 'f1'), path), 'has 2 links'],
    ['a set-user-id file', (path) => setId(path, 0o4700), 'has the set-user-id or set-group-id bit'],
    ['a set-group-id file', (path) => setId(path, 0o2700), 'has the set-user-id or set-group-id bit'],
  ]
  const setId = (path: string, mode: number) => {
    writeFileSync(path, '')
    chownSync(path, OWNER, OWNER)
    chmodSync(path, mode)
  }
  test.each(misfits)('%s is refused with its path, and nothing is changed', (_, plant, reason) => {
    fill()
    const path = file('base', '5', 'planted')
    plant(path)
    // the second link leads to a file of the old owner: the count of links must decide, not the owner
    if (lstatSync(path).nlink === 2) chownSync(path, OWNER, OWNER)
    else if (!reason.startsWith('has the')) spawnSync('chown', ['-h', as(OWNER), path])
    const before = inventory(scratch.path)
    for (const program of [door, doorOfOldKernels])
      for (const check of [['--check'], []])
        expect(
          run(['hand-over', '--from', `${OWNER}`, '--to', as(OTHER), ...check, tree], '', program),
        ).toMatchObject({ status: 1, stderr: `floe-tree: MISFIT: hand-over "${path}": ${reason}\n` })
    expect(inventoryWithoutPipes(before)).toBe(true)
    expect(statSync(tree).uid).toBe(OWNER)
  })
  const inventoryWithoutPipes = (before: string[]) =>
    JSON.stringify(inventory(scratch.path)) === JSON.stringify(before)

  test('a file of somebody else, and a link on the way to the tree, are refused', () => {
    fill()
    writeFileSync(file('base', 'planted'), '')
    expect(handOver()).toMatchObject({
      status: 1,
      stderr: `floe-tree: MISFIT: hand-over "${file('base', 'planted')}": belongs to user 0\n`,
    })
    rmSync(file('base', 'planted'))
    symlinkSync(scratch.path, join(vault, 'way'))
    for (const program of [door, doorOfOldKernels])
      expect(
        run(['hand-over', '--from', `${OWNER}`, '--to', as(OTHER), join(vault, 'way', 'tree')], '', program)
          .status,
      ).toBe(1)
    renameSync(tree, join(scratch.path, 'real'))
    symlinkSync(join(scratch.path, 'real'), tree)
    for (const program of [door, doorOfOldKernels])
      expect(run(['hand-over', '--from', `${OWNER}`, '--to', as(OTHER), tree], '', program)).toMatchObject({
        status: 1,
      })
    expect(statSync(join(scratch.path, 'real')).uid).toBe(OWNER)
    rmSync(tree)
    renameSync(join(scratch.path, 'real'), tree)
    expect(owners()).toEqual(new Set([as(OWNER)]))
  })

  test.each(['r', 'r+'])('a file that the old user still has open (%s) is refused', async (mode) => {
    fill()
    const holder = spawn(
      ...script(
        OWNER,
        `fs.openSync(${JSON.stringify(file('base', '5', '1'))}, '${mode}'); console.log('open'); setInterval(() => {}, 1e6)`,
      ),
    ) as ChildProcess & { stdout: NodeJS.ReadableStream }
    await new Promise((resolve) => holder.stdout.once('data', resolve))
    expect(handOver()).toMatchObject({
      status: 1,
      stderr: `floe-tree: MISFIT: hand-over "${file('base', '5', '1')}": is open in another process\n`,
    })
    expect(owners()).toEqual(new Set([as(OWNER)]))
    holder.kill('SIGKILL')
    await ended(holder)
    expect(handOver()).toMatchObject(done)
  })

  test('killed half-way, the next run ends right; until then the root is the new user’s', async () => {
    for (let d = 0; d < 16; d++) {
      mkdirSync(file(`d${d}`), { mode: 0o700 })
      for (let i = 0; i < 500; i++) writeFileSync(file(`d${d}`, `f${i}`), '', { mode: 0o600 })
    }
    give(tree)
    const child = spawn(door, ['hand-over', '--from', `${OWNER}`, '--to', as(OTHER), tree])
    await new Promise((resolve) => child.stdout.once('data', resolve))
    child.kill('SIGKILL')
    await ended(child)
    expect(owners()).toEqual(new Set([as(OWNER), as(OTHER)]))
    expect(statSync(tree).uid).toBe(OTHER)
    expect(handOver()).toMatchObject(done)
    expect(owners()).toEqual(new Set([as(OTHER)]))
  })
})

const noXfs = whyNoXfs()
describe.skipIf(noXfs !== null)(
  `sharing blocks between two users’ trees${noXfs ? ` (${noXfs})` : ''}`,
  () => {
    const mount = join(scratch.path, 'xfs')
    const source = join(mount, 'source')
    const target = join(mount, 'target')
    let unmount = () => {}
    beforeAll(() => {
      mkdirSync(mount)
      unmount = mountXfs(join(scratch.path, 'image'), mount)
    })
    afterAll(() => unmount())
    beforeEach(() => {
      for (const [path, uid] of [
        [source, OWNER],
        [target, OTHER],
      ] as const) {
        rmSync(path, { recursive: true, force: true })
        mkdirSync(path, { mode: 0o700 })
        chownSync(path, uid, uid)
      }
      mkdirSync(join(source, 'base', '5'), { recursive: true })
      for (const name of ['PG_VERSION', 'base/5/1', 'base/5/2']) {
        writeFileSync(join(source, name), `text of ${name}`.repeat(10_000))
        chmodSync(join(source, name), 0o640)
      }
      give(source)
    })
    const clone = (paths: string[], program = door) =>
      run(
        ['--as', as(OTHER), 'clone', '--from', as(OWNER), source, target],
        paths.map((path) => `${path}\0`).join(''),
        program,
      )

    test.each([
      ['with openat2', () => door],
      ['without openat2', () => doorOfOldKernels],
    ])('copies are the target’s, parents are made, missing ones are named (%s)', (_, program) => {
      const paths = ['base/5/1', 'base/5/2', 'PG_VERSION', 'gone', 'base/6/gone']
      const r = clone(paths, program())
      expect(r).toMatchObject({ ...done, stdout: 'gone\0base/6/gone\0' })
      for (const path of paths.slice(0, 3)) {
        expect(text(join(target, path))).toBe(text(join(source, path)))
        const { uid, gid, mode } = statSync(join(target, path))
        expect([uid, gid, mode & 0o7777]).toEqual([OTHER, OTHER, 0o600])
      }
      expect([statSync(join(target, 'base', '5')).uid, statSync(join(target, 'base')).mode & 0o7777]).toEqual(
        [OTHER, 0o700],
      )
      expect(existsSync(join(target, 'base', '6'))).toBe(false)
      // what is there is not written over
      expect(clone(['PG_VERSION'], program())).toMatchObject(refused('EEXIST', 'clone', 'PG_VERSION'))
    })

    test.each([
      ['with openat2', () => door],
      ['without openat2', () => doorOfOldKernels],
    ])(
      'neither links nor pipes nor paths upwards are read, and nothing of them is made (%s)',
      (_, program) => {
        for (const path of ['../target', '/etc/passwd', 'base/../../x', '.', 'base//5', 'base/./5', 'base/'])
          expect(clone([path], program()), path).toMatchObject(refused('MISFIT', 'clone', path))
        const secret = join(mount, 'secret')
        mkdirSync(secret, { recursive: true, mode: 0o700 })
        writeFileSync(join(secret, 'key'), 'secret', { mode: 0o600 })
        const plant = join(source, 'base', 'planted')
        symlinkSync(join(secret, 'key'), plant)
        expect(clone(['base/planted'], program())).toMatchObject(refused('ELOOP', 'clone', 'base/planted'))
        rmSync(plant)
        symlinkSync(secret, plant)
        expect(clone(['base/planted/key'], program())).toMatchObject(
          refused('ELOOP', 'clone', 'base/planted/key'),
        )
        rmSync(plant)
        spawnSync('mkfifo', [plant])
        give(plant)
        expect(clone(['base/planted'], program())).toMatchObject(refused('MISFIT', 'clone', 'base/planted'))
        rmSync(plant)
        mkdirSync(plant)
        give(plant)
        expect(clone(['base/planted'], program())).toMatchObject(refused('MISFIT', 'clone', 'base/planted'))
        rmSync(plant, { recursive: true })
        // a second name of a file that the owner may not read
        linkSync(join(secret, 'key'), plant)
        expect(clone(['base/planted'], program())).toMatchObject(refused('EACCES', 'clone', 'base/planted'))
        rmSync(plant)
        // links in the target
        symlinkSync(secret, join(target, 'base'))
        expect(clone(['base/5/1'], program())).toMatchObject({ status: 1 })
        rmSync(join(target, 'base'))
        symlinkSync(join(secret, 'new'), join(target, 'PG_VERSION'))
        expect(clone(['PG_VERSION'], program())).toMatchObject({ status: 1 })
        rmSync(join(target, 'PG_VERSION'))
        expect(readdirSync(secret)).toEqual(['key'])
        expect(readdirSync(target)).toEqual([])
      },
    )

    test('a file system that cannot share blocks is said, and nothing is left of the try', () => {
      const elsewhere = join(scratch.path, 'elsewhere')
      mkdirSync(elsewhere)
      give(elsewhere, OTHER)
      const r = run(['--as', as(OTHER), 'clone', '--from', as(OWNER), source, elsewhere], 'PG_VERSION')
      expect(r).toMatchObject(refused('(EXDEV|EOPNOTSUPP)', 'clone', 'PG_VERSION'))
      expect(readdirSync(elsewhere)).toEqual([])
    })
  },
)

/** Writes an access control list with one named user, as setfacl does. */
const ACL = `import os,struct,sys
e=[(1,7,-1),(2,7,int(sys.argv[2])),(4,0,-1),(16,7,-1),(32,0,-1)]
os.setxattr(sys.argv[1],'system.posix_acl_access',struct.pack('<I',2)+b''.join(struct.pack('<HHI',t,p,i&0xffffffff) for t,p,i in e))`

function ended(child: ChildProcess): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve(child.exitCode)
  return new Promise((resolve) => child.once('exit', (status) => resolve(status)))
}

async function appears(condition: () => boolean): Promise<void> {
  for (const until = Date.now() + 20_000; Date.now() < until; ) {
    if (condition()) return
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  throw new Error('it did not happen within 20 s')
}
