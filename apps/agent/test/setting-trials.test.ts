import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { agentFault } from '@floe/agent-contract/client'
import { superuserOnlySettings } from '@floe/domain'
import { giveTo, makeTestAuthority } from '@floe/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ProcessesOfUsers } from '../src/host/process-table'
import { AgentFixture, asInstanceId } from './agent-fixture'

let f: AgentFixture
let id: string
/** Where everybody may write: what ran leaves a file there. */
let directory: string
let library: string
const marks = () => readdirSync(directory).filter((name) => name.startsWith('ran-'))
beforeAll(async () => {
  directory = mkdtempSync('/tmp/floe-trials-')
  chmodSync(directory, 0o777)
  const source = join(directory, 'touching.c')
  library = join(directory, 'touching.so')
  writeFileSync(
    source,
    `#include <fcntl.h>
     __attribute__((constructor)) static void touch(void) { open("${directory}/ran-library", O_CREAT | O_WRONLY, 0666); }
     int Pg_magic_func_is_missing;`,
  )
  execFileSync('gcc', ['-shared', '-fPIC', '-o', library, source])
  f = await AgentFixture.start()
  id = await f.createRunning()
})
afterAll(async () => {
  await f.remove()
  rmSync(directory, { recursive: true, force: true })
})

/** The instance's own user. */
const owner = () => {
  const { uid, gid } = statSync(f.dataDirectory(id))
  return { name: 'of the instance', uid, gid }
}
type Change = { name: string; value: string | null }
const tried = async (changes: Change[], instanceId = id) => {
  const { results } = await f.must({ kind: 'try-settings', instanceId, changes, acrossCluster: false })
  return results.map((r) => r.fault?.code ?? null)
}
const codeOf = (asked: Promise<unknown>) =>
  asked.then(
    () => 'answered',
    (error: unknown) => agentFault(error).code,
  )

describe('a check of settings', () => {
  test('is not started by a certificate that may only read', async () => {
    const changes = [{ name: 'shared_preload_libraries', value: library }]
    expect(await codeOf(f.read.setting.check.query({ instanceId: asInstanceId(id), changes }))).toBe(
      'agent.read_only',
    )
    expect(marks()).toEqual([])
  })

  test('loads no library from outside the engine, by whatever setting', async () => {
    for (const change of [
      { name: 'shared_preload_libraries', value: library },
      { name: 'shared_preload_libraries', value: `$libdir/../../../../../..${library}` },
      { name: 'session_preload_libraries', value: library },
      { name: 'local_preload_libraries', value: library },
      { name: 'oauth_validator_libraries', value: library },
      { name: 'dynamic_library_path', value: directory },
      { name: 'jit_provider', value: `../../../../../..${library.replace(/\.so$/, '')}` },
    ])
      expect([change.name, await tried([change])]).toEqual([change.name, ['setting.library_outside']])
    const both = [
      { name: 'dynamic_library_path', value: directory },
      { name: 'shared_preload_libraries', value: 'touching' },
    ]
    expect((await tried(both))[0]).toBe('setting.library_outside')
    const done = await f.run({ kind: 'change-settings', instanceId: id, changes: both })
    expect(done.fault?.code).toBe('setting.library_outside')
    expect(marks()).toEqual([])
    // the engine's own are as welcome as ever
    expect(await tried([{ name: 'shared_preload_libraries', value: 'auto_explain' }])).toEqual([null])
  })

  test('runs no command that a setting names', async () => {
    const commands = ['archive_command', 'restore_command', 'recovery_end_command', 'archive_cleanup_command']
    const changes = commands.map((name) => ({ name, value: `touch ${directory}/ran-${name}` }))
    expect(await tried([...changes, { name: 'archive_mode', value: 'on' }])).toEqual(Array(5).fill(null))
    const identity = await (await makeTestAuthority()).host(randomUUID())
    const [certificate, key] = identity.split(/(?=-----BEGIN PRIVATE KEY)/) as [string, string]
    const locked = execFileSync('openssl', ['pkey', '-aes256', '-passout', 'pass:locked'], { input: key })
    for (const [name, text] of [
      ['locked.crt', certificate],
      ['locked.key', locked],
    ] as const) {
      writeFileSync(`${f.dataDirectory(id)}/${name}`, text, { mode: 0o600 })
      giveTo(`${f.dataDirectory(id)}/${name}`, owner())
    }
    const withPassphrase = [
      { name: 'ssl_cert_file', value: 'locked.crt' },
      { name: 'ssl_key_file', value: 'locked.key' },
      { name: 'ssl_passphrase_command', value: `touch ${directory}/ran-passphrase; echo locked` },
    ]
    // a key that cannot be opened without running it does not make the whole check a refusal
    expect(await tried(withPassphrase)).toEqual([null, null, null])
    expect(marks()).toEqual([])
  })

  test('runs as the instance’s user in a directory of the instance’s, and leaves nothing elsewhere', async () => {
    await tried([{ name: 'max_connections', value: '77' }])
    const { instancesDirectory, socketDirectory } = f.installation
    const trial = join(instancesDirectory, id, 'trial')
    expect(statSync(trial).mode & 0o777).toBe(0o700)
    expect(statSync(trial).uid).toBe(owner().uid)
    expect(existsSync(join(instancesDirectory, '.trials'))).toBe(false)
    expect(readdirSync(socketDirectory).filter((n) => n.startsWith('trial-'))).toEqual([])
    expect(readdirSync(f.dataDirectory(id)).filter((n) => n.endsWith('.trial'))).toEqual([])
  })

  test('follows no link that stands in its directory', async () => {
    const trial = join(f.installation.instancesDirectory, id, 'trial')
    const elsewhere = join(directory, 'elsewhere')
    mkdirSync(elsewhere, { mode: 0o700 })
    writeFileSync(join(elsewhere, 'kept'), '')
    // as whoever is superuser of the instance could
    const [key] = readdirSync(trial)
    const { uid, gid } = owner()
    const as = process.getuid?.() === 0 ? { uid, gid } : {}
    execFileSync('sh', ['-c', `rm -rf "$0" && ln -s ${elsewhere} "$0"`, join(trial, key as string)], {
      ...as,
      cwd: '/',
    })
    await f.run({
      kind: 'try-settings',
      instanceId: id,
      changes: [{ name: 'max_connections', value: '78' }],
      acrossCluster: false,
    })
    expect(readdirSync(elsewhere)).toEqual(['kept'])
    execFileSync('rm', ['-f', join(trial, key as string)])
    expect(await tried([{ name: 'max_connections', value: '78' }])).toEqual([null])
  })

  test('goes on beside other tasks of the instance, and is itself in nobody’s way', async () => {
    const slow = f.begin({ kind: 'restart-instance', instanceId: id, mode: 'fast' })
    const check = f.begin({
      kind: 'try-settings',
      instanceId: id,
      changes: [{ name: 'work_mem', value: '8MB' }],
      acrossCluster: false,
    })
    expect((await f.ended(await check)).fault?.code).not.toBe('task.instance_busy')
    expect((await f.ended(await slow)).state).toBe('succeeded')
  })

  test('of an instance that is not there yet is judged by the engine it would get', async () => {
    const { results } = await f.must({
      kind: 'try-new-settings',
      instanceId: randomUUID(),
      changes: [
        { name: 'work_mem', value: '8MB' },
        { name: 'shared_buffers', value: '1 parsec' },
        { name: 'no_such_setting', value: '1' },
        { name: 'shared_preload_libraries', value: library },
      ],
    })
    expect(results.map((r) => r.fault?.code ?? null)).toEqual([
      null,
      'setting.invalid_value',
      'setting.unknown',
      'setting.library_outside',
    ])
    const { results: together } = await f.must({
      kind: 'try-new-settings',
      instanceId: randomUUID(),
      changes: [{ name: 'superuser_reserved_connections', value: '100' }],
    })
    expect(together[0]?.fault?.code).toBe('setting.would_not_start')
    expect(marks()).toEqual([])
  })
})

test.runIf(process.getuid?.() === 0)(
  'of a check for an instance that is not there yet nothing stays but the prepared data directory',
  async () => {
    const { hostId, instancesDirectory, socketDirectory } = f.installation
    const check = async (value: string) => {
      const { results } = await f.must({
        kind: 'try-new-settings',
        instanceId: randomUUID(),
        changes: [
          { name: 'max_connections', value },
          { name: 'dynamic_shared_memory_type', value: 'sysv' },
        ],
      })
      expect(results.map((r) => r.fault ?? null)).toEqual([null, null])
    }
    const place = join(instancesDirectory, '.new-instance', 'trial')
    const named = (top: string) =>
      execFileSync('find', [top, '-ignore_readdir_race', '-uid', String(uid), '-printf', '%P\n'], {
        encoding: 'utf8',
      })
        .split('\n')
        .filter(
          (name) =>
            name !== '' && !/^\w+\/pgdata\/(?:base|pg_wal|pg_xact|pg_multixact|pg_subtrans)\//.test(name),
        )
        .sort()
    await check('71')
    const uid = Number(execFileSync('id', ['-u', `floe-${hostId.slice(-12)}`], { encoding: 'utf8' }))
    const prepared = named(place)
    expect(prepared.filter((name) => /^\w+$/.test(name))).toHaveLength(1)
    await check('72')
    expect(named(place)).toEqual(prepared)
    expect(prepared.filter((name) => /trial$|postmaster\.pid$/.test(name))).toEqual([])
    expect(readdirSync(socketDirectory).filter((name) => name.startsWith('trial-'))).toEqual([])
    for (const top of [directory, '/dev/shm', '/run']) expect(named(top), top).toEqual([])
    const memory = readFileSync('/proc/sysvipc/shm', 'utf8').trim().split('\n')
    const owner = memory[0]?.trim().split(/\s+/).indexOf('uid') as number
    expect(memory.filter((row) => row.trim().split(/\s+/)[owner] === String(uid))).toEqual([])
    expect(new ProcessesOfUsers().of(uid)).toEqual([])
  },
)

test('the list of what only superusers see is the engine’s', async () => {
  await f.query(id, 'create role stranger')
  await f.query(
    id,
    `create function seen_by_strangers() returns setof text language sql security definer
       as 'select name from pg_settings'`,
  )
  await f.query(id, 'alter function seen_by_strangers() owner to stranger')
  const rows = await f.query<{ name: string }>(
    id,
    'select name from pg_settings except select seen_by_strangers() order by name',
  )
  expect(rows.map((r) => r.name)).toEqual([...superuserOnlySettings].sort())
})

test('a deleted instance takes its trials with it', async () => {
  const other = await f.createRunning()
  await tried([{ name: 'max_connections', value: '60' }], other)
  const { name } = (await f.observed(other)) as { name: string }
  await f.must({ kind: 'delete-instance', instanceId: other, confirmName: name, keepFiles: false })
  expect(existsSync(join(f.installation.instancesDirectory, other))).toBe(false)
})
