import { spawn, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { waitUntil } from '@floe/testkit'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { InstanceUsers } from './instance-users'
import { complaintsOf } from './uids-with-files'

/** Uids that nothing else of this machine is given. */
const RANGE = { from: 64_200, to: 64_201 }

describe.runIf(process.getuid?.() === 0)('users of instances', () => {
  const scratch = mkdtempSync(join(tmpdir(), 'floe-users-'))
  const directory = join(scratch, 'shared', 'users')
  const users = () => new InstanceUsers({ home: scratch, range: RANGE, directory, filesBelow: scratch })
  const made = new Map<string, Awaited<ReturnType<InstanceUsers['claim']>>>()
  const claim = async (id: string) => {
    const user = await users().claim(id)
    made.set(id, user)
    return user
  }
  const release = async (id: string) => {
    const user = made.get(id)
    if (user) await users().release(id, user)
    made.delete(id)
  }
  // as the agent's
  const umask = process.umask(0o077)
  afterAll(async () => {
    process.umask(umask)
    for (const id of [...made.keys()]) await release(id)
    rmSync(scratch, { recursive: true, force: true })
  })
  const [one, two, three] = [randomUUID(), randomUUID(), randomUUID()] as [string, string, string]

  test('agents that ask at once get different users, and one that asks again the same', async () => {
    const [a, b] = await Promise.all([claim(one), claim(two)])
    expect([a.uid, b.uid].sort()).toEqual([RANGE.from, RANGE.to])
    expect(await users().claim(one)).toEqual(a)
  })

  test('whose uid it is can be read by root alone; others pass the directory above it', () => {
    expect(statSync(directory).mode & 0o777).toBe(0o700)
    expect(statSync(join(scratch, 'shared')).mode & 0o777).toBe(0o755)
  })

  test('a uid is not given out again while a file of its former user is left', async () => {
    const left = join(scratch, 'left')
    writeFileSync(left, '')
    const uid = made.get(one)?.uid as number
    chownSync(left, uid, uid)
    await release(one)
    await expect(claim(three)).rejects.toMatchObject({
      fault: { code: 'host.no_user_left', detail: expect.stringContaining(`${RANGE.from} to ${RANGE.to}`) },
    })
    rmSync(left)
    expect((await claim(three)).uid).toBe(uid)
  })

  test('a process whose first thread has ended is ended with its user', async () => {
    const id = made.has(two) ? two : one
    const user = made.get(id) as Awaited<ReturnType<InstanceUsers['claim']>>
    const program = join(scratch, 'threaded')
    const source = `#include <pthread.h>
#include <unistd.h>
static void *wait_for_ever(void *unused) { for (;;) pause(); return unused; }
int main(void) { pthread_t t; pthread_create(&t, 0, wait_for_ever, 0); pthread_exit(0); }
`
    const built = spawnSync('cc', ['-x', 'c', '-pthread', '-o', program, '-'], { input: source })
    expect(built.stderr.toString()).toBe('')
    for (const path of [scratch, program]) chmodSync(path, 0o755)
    const child = spawn(program, { uid: user.uid, gid: user.gid, cwd: '/', stdio: 'ignore' })
    const ended = new Promise((resolve) => child.once('exit', (_status, signal) => resolve(signal)))
    const state = () => /^State:\s+(\S)/m.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]
    await waitUntil('its first thread has ended', async () => state() === 'Z')
    await release(id)
    expect(await ended).toBe('SIGKILL')
  })
})

describe.runIf(process.getuid?.() === 0)('no uid is given out again', () => {
  const scratch = mkdtempSync(join(tmpdir(), 'floe-users-'))
  const directory = join(scratch, 'users')
  const next = join(directory, 'next')
  const range = { from: 64_240, to: 64_249 }
  const users = () => new InstanceUsers({ home: scratch, range, directory, filesBelow: scratch })
  /** The uid of an instance, which is deleted at once. */
  const passed = async (id: string = randomUUID()) => {
    const user = await users().claim(id)
    await users().release(id, user)
    return user.uid
  }
  afterAll(() => rmSync(scratch, { recursive: true, force: true }))

  test('where an agent writes the next one after another one has come further', async () => {
    await passed()
    const slower = readFileSync(next, 'utf8')
    const further = randomUUID()
    const user = await users().claim(further)
    writeFileSync(next, slower)
    await users().release(further, user)
    expect(await passed()).toBe(user.uid + 1)
    expect(readdirSync(directory)).toEqual([`given-below-${user.uid + 2}`, 'next'])
  })

  test('where an agent was killed between a claim and the note of the next one', async () => {
    const id = randomUUID()
    const { uid } = await users().claim(id)
    rmSync(join(directory, `given-below-${uid + 1}`))
    writeFileSync(next, `${uid}\n`)
    expect(await passed(id)).toBe(uid)
    expect(await passed()).toBe(uid + 1)
  })
})

describe.runIf(process.getuid?.() === 0)('the user of files that are there', () => {
  const range = { from: 64_220, to: 64_229 }
  const scratch = mkdtempSync(join(tmpdir(), 'floe-users-'))
  const directory = join(scratch, 'users')
  const usersOf = (home: string) => new InstanceUsers({ home, range, directory, filesBelow: scratch })
  const users = usersOf(scratch)
  const [one, two] = [randomUUID(), randomUUID()]
  let user: Awaited<ReturnType<InstanceUsers['claim']>>
  beforeEach(async () => {
    user = await users.claim(one)
  })
  afterEach(() => users.release(one, user))
  afterAll(() => rmSync(scratch, { recursive: true, force: true }))
  const claim = () => join(directory, `${user.uid}.json`)
  const refusal = (instanceId: string, owner: { uid: number; gid: number }, of = users) =>
    of.reclaim(instanceId, owner).then(
      () => 'none',
      (error) => error.fault.detail as string,
    )

  test('is that of the claim, or is claimed again where nobody else has it', async () => {
    expect(await users.reclaim(one, user)).toEqual(user)
    const before = readFileSync(claim(), 'utf8')
    rmSync(claim())
    await users.reclaim(one, user, { checkOnly: true })
    expect(() => readFileSync(claim())).toThrow('ENOENT')
    expect(await users.reclaim(one, user)).toEqual(user)
    const of = (text: string) => ({ ...JSON.parse(text), claimedAt: 0 })
    expect(of(readFileSync(claim(), 'utf8'))).toEqual(of(before))
    // and is made again where it is gone from the host
    spawnSync('userdel', [user.name])
    expect(await users.reclaim(one, user)).toEqual(user)
    expect(readFileSync('/etc/passwd', 'utf8')).toContain(`${user.name}:x:${user.uid}:`)
  })

  test('is refused where it is another one’s, or could be', async () => {
    expect(await refusal(two, user)).toContain(`It was given to instance ${one}`)
    expect(await refusal(one, user, usersOf(`${scratch}/other`))).toContain('of the installation in')
    expect(await refusal(two, { uid: 0, gid: 0 })).toContain('Instances are given uids')
    expect(await refusal(one, { ...user, gid: 0 })).toContain('Its group is 0')
    expect(await refusal(one, { uid: user.uid + 1, gid: user.uid + 1 })).toContain(`has uid ${user.uid}`)
    rmSync(claim())
    // without a claim its name tells
    expect(await refusal(two, user)).toContain(`It is user "${user.name}"`)
    writeFileSync(claim(), '')
    expect(await refusal(one, user)).toContain('Whose it is cannot be read')
    rmSync(claim())
    await users.reclaim(one, user)
  })
})

describe.runIf(process.getuid?.() === 0)('where it is lost which uid is next', () => {
  const range = { from: 64_210, to: 64_219 }
  const scratch = mkdtempSync(join(tmpdir(), 'floe-users-'))
  const directory = join(scratch, 'users')
  const next = join(directory, 'next')
  const usersOf = (filesBelow: string) => new InstanceUsers({ home: scratch, range, directory, filesBelow })
  const made: { id: string; user: Awaited<ReturnType<InstanceUsers['claim']>> }[] = []
  const claim = async (filesBelow = scratch) => {
    const id = randomUUID()
    const user = await usersOf(filesBelow).claim(id)
    made.push({ id, user })
    return user.uid
  }
  const release = async () => {
    for (const { id, user } of made.splice(0)) await usersOf(scratch).release(id, user)
  }
  const lose = () => {
    const names = existsSync(directory) ? readdirSync(directory) : []
    for (const name of names.filter((n) => /^(next|given-below-)/.test(n))) rmSync(join(directory, name))
  }
  beforeEach(lose)
  afterEach(release)
  afterAll(() => rmSync(scratch, { recursive: true, force: true }))

  test('a file of a user that is gone keeps its uid from being given out', async () => {
    const left = join(scratch, 'left')
    writeFileSync(left, '')
    chownSync(left, range.from + 3, range.from)
    expect(await claim()).toBe(range.from + 4)
    rmSync(left)
    // from then on it is written down again
    await release()
    expect(await claim()).toBe(range.from + 5)
  })

  test('so does a process', async () => {
    const uid = range.from + 2
    const child = spawn('sleep', ['60'], { uid, gid: uid, cwd: '/', stdio: 'ignore' })
    const ended = new Promise((resolve) => child.once('exit', resolve))
    try {
      expect(await claim()).toBe(uid + 1)
    } finally {
      child.kill('SIGKILL')
      await ended
    }
  })

  test('so does a user whose record is lost, too, and a record without a user', async () => {
    const uid = await claim()
    rmSync(join(directory, `${uid}.json`))
    lose()
    expect(await claim()).toBe(uid + 1)
    writeFileSync(join(directory, `${uid + 5}.json`), '')
    // damaged as it would be if the disk were full
    lose()
    writeFileSync(next, '')
    expect(await claim()).toBe(uid + 6)
    rmSync(join(directory, `${uid + 5}.json`))
  })

  test('nobody gets a user when files cannot be searched, and it is searched again then', async () => {
    const missing = join(scratch, 'not mounted')
    await expect(claim(missing)).rejects.toMatchObject({
      fault: { code: 'host.no_user', detail: expect.stringContaining('No such file or directory') },
    })
    await expect(usersOf(missing).prepare()).rejects.toMatchObject({ fault: { code: 'host.no_user' } })
    await usersOf(scratch).prepare()
    expect(await claim(missing)).toBe(range.from)
  })
})

test('of what find could not search, only mounts that are not searched are no matter', () => {
  const said = 'find: ‘/run/user/1000/doc’: Permission denied\nfind: ‘/srv’: Input/output error\n'
  expect(complaintsOf(said, ['/run/user/1000/doc'])).toEqual(['find: ‘/srv’: Input/output error'])
  expect(complaintsOf(said, [])).toHaveLength(2)
})
