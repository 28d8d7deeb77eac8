import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { instanceLayout } from '../engine/directory/layout'
import { findPostmaster, waitsToBeReaped } from '../engine/process/postmaster'
import { readTail } from '../engine/process/server-log'
import { CheckpointFollower } from '../sampler/checkpoint-follower'
import { CheckpointStore } from '../sampler/checkpoint-store'
import { parseMounts, readDisks } from './disks'
import { findEngineUser } from './engine-user'
import { readOwnedFile } from './owned-files'
import { choosePort, isPortFree } from './ports'
import { runCommand } from './run-command'

const scratch = (run: (directory: string) => void) => {
  const directory = mkdtempSync(join(tmpdir(), 'floe-host-'))
  try {
    run(directory)
  } finally {
    rmSync(directory, { recursive: true })
  }
}

describe('ports', () => {
  test('a port of an instance and one that something listens on are passed over', async () => {
    const port = await choosePort({ from: 100, to: 103 }, new Set([100]), async (p) => p !== 101)
    expect(port).toBe(102)
  })

  test('a full range is said', async () => {
    await expect(choosePort({ from: 1, to: 2 }, new Set([1, 2]))).rejects.toMatchObject({
      fault: { code: 'host.no_free_port' },
    })
  })

  test('a port that something listens on is not free', async () => {
    const listener = createServer()
    await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
    const { port } = listener.address() as { port: number }
    expect(await isPortFree(port)).toBe(false)
    await new Promise((resolve) => listener.close(resolve))
    expect(await isPortFree(port)).toBe(true)
  })
})

describe('files', () => {
  test('a symbolic link is not read through', () =>
    scratch((d) => {
      const target = join(d, 'target')
      writeFileSync(target, 'secret')
      symlinkSync(target, join(d, 'link'))
      expect(() => readOwnedFile(join(d, 'link'))).toThrow('is not a regular file')
    }))
})

describe('a pipe planted under a name the agent reads', () => {
  const layout = (d: string) => ({ ...instanceLayout(d, 'i'), postmasterPid: join(d, 'postmaster.pid') })

  test.each([
    ['a file of settings', 'floe.conf', (d: string) => readOwnedFile(join(d, 'floe.conf'))],
    ['the server log', 'engine-1.json', (d: string) => readTail(join(d, 'engine-1.json'))],
    ['postmaster.pid', 'postmaster.pid', (d: string) => findPostmaster(layout(d), { uid: null })],
    ['postmaster.pid of an ended engine', 'postmaster.pid', (d: string) => waitsToBeReaped(layout(d))],
    [
      'the log that checkpoints are read from',
      'engine-1.json',
      (d: string) =>
        new CheckpointFollower(
          d,
          () => ({ name: 'own', uid: null, gid: null }),
          new CheckpointStore(join(d, 'c.jsonl')),
        ).step(),
    ],
  ])('in place of %s does not hold it up', (_, name, read) =>
    scratch((d) => {
      execFileSync('mkfifo', [join(d, name)])
      // it ends a read that waits, so that this test fails rather than hangs
      const writer = spawn('/bin/sh', ['-c', `sleep 5; exec echo > '${join(d, name)}'`], { stdio: 'ignore' })
      try {
        const begun = performance.now()
        try {
          expect(read(d)).toBeFalsy()
        } catch (error) {
          expect(error).toMatchObject({ fault: { code: 'host.not_a_file' } })
        }
        expect(performance.now() - begun).toBeLessThan(2_000)
      } finally {
        writer.kill('SIGKILL')
      }
    }),
  )
})

describe('engine user', () => {
  const passwd = (run: (path: string) => void) =>
    scratch((d) => {
      const path = join(d, 'passwd')
      writeFileSync(
        path,
        'root:x:0:0::/root:/bin/sh\nfloe:x:999:998::/:/bin/false\nann:x:1000:1000::/:/bin/sh\n',
      )
      run(path)
    })

  test('root runs engines as the user named, never as itself', () =>
    passwd((path) => {
      expect(findEngineUser('floe', path, 0)).toEqual({ name: 'floe', uid: 999, gid: 998 })
      expect(() => findEngineUser(null, path, 0)).toThrow('cannot run as root')
      expect(() => findEngineUser('nobody-here', path, 0)).toThrow('does not exist')
    }))

  test('without root it is the own user', () =>
    passwd((path) => {
      expect(findEngineUser(null, path, 1_000)).toEqual({ name: 'ann', uid: null, gid: null })
      expect(() => findEngineUser('floe', path, 1_000)).toThrow('cannot run engines as user "floe"')
    }))
})

describe('disks', () => {
  test('blanks in a mount are undone', () => {
    expect(parseMounts('/dev/sdb1 /mnt/my\\040disk xfs rw,noatime 0 0\n')).toEqual([
      { device: '/dev/sdb1', mount: '/mnt/my disk', fileSystem: 'xfs', options: 'rw,noatime' },
    ])
  })

  test('each file system is listed once, with its size', () => {
    const disks = readDisks(['/', '/', '/does/not/exist'])
    expect(disks).toHaveLength(1)
    expect(disks[0]?.sizeBytes).toBeGreaterThan(disks[0]?.freeBytes as number)
    expect(disks[0]).toMatchObject({ holdsInstances: true, readBytes: null, writeBytes: null })
  })
})

describe('commands', () => {
  test('status and both outputs come back', async () => {
    const r = await runCommand('/bin/sh', ['-c', 'cat; echo err >&2; exit 3'], { input: 'in' })
    expect(r).toMatchObject({ status: 3, stdout: 'in', stderr: 'err\n' })
  })

  test('a command that takes too long is ended with its children', async () => {
    const begun = performance.now()
    const r = await runCommand('/bin/sh', ['-c', 'sleep 30 & wait'], { timeoutMs: 100 })
    expect(r.signal).toBe('SIGKILL')
    expect(performance.now() - begun).toBeLessThan(10_000)
  })

  test.runIf(process.getuid?.() === 0)(
    'what runs as a user has nothing of root and can get nothing',
    async () => {
      const user = { name: 'nobody', uid: 65_534, gid: 65_534 }
      const { status, stdout } = await runCommand('cat', ['/proc/self/status'], { user })
      expect(status).toBe(0)
      const said = new Map(stdout.split('\n').map((line) => line.split(/:\s*/) as [string, string]))
      for (const kind of ['Uid', 'Gid']) expect(said.get(kind), kind).toBe(Array(4).fill('65534').join('\t'))
      expect(said.get('Groups')?.trim()).toBe('')
      for (const kind of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'])
        expect(said.get(kind), kind).toBe('0'.repeat(16))
      expect(said.get('NoNewPrivs')).toBe('1')
      // root's own commands keep what they need
      const bounding = (text: string) => /^CapBnd:.*$/m.exec(text)?.[0]
      const own = await runCommand('cat', ['/proc/self/status'])
      expect(bounding(own.stdout)).toBe(bounding(readFileSync('/proc/self/status', 'utf8')))
    },
  )
})
