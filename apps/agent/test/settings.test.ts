import { randomUUID, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { agentFault } from '@floe/agent-contract/client'
import { giveTo, makeTestAuthority, waitUntil } from '@floe/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { AgentFixture, asInstanceId } from './agent-fixture'

let f: AgentFixture
let id: string
beforeAll(async () => {
  f = await AgentFixture.start()
  id = await f.createRunning()
})
afterAll(() => f.remove())

const change = (name: string, value: string | null) =>
  f.run({ kind: 'change-settings', instanceId: id, changes: [{ name, value }] })
const managedFile = () => readFileSync(`${f.dataDirectory(id)}/floe.conf`, 'utf8')
const shown = async (name: string) =>
  (await f.query<{ v: string }>(id, `select current_setting('${name}') as v`))[0]?.v

describe('a change', () => {
  test('that a reload makes is in force and confirmed with old and new', async () => {
    const done = await change('wal_compression', 'pglz')
    expect(done.result?.confirmed).toEqual([
      { name: 'wal_compression', oldValue: 'off', newValue: 'pglz', pendingRestart: false },
    ])
    expect(await shown('wal_compression')).toBe('pglz')
  })

  test('of full_page_writes to off is refused while nothing could restore a torn page, unless the guard is off', async () => {
    const refused = await change('full_page_writes', 'off')
    expect(refused.fault).toMatchObject({
      code: 'setting.unprotected',
      detail: 'No standby is a page repair source.',
    })
    expect(await shown('full_page_writes')).toBe('on')
    const list = [
      { name: 'full_page_writes', value: 'off' },
      { name: 'polar_page_repair_guard', value: 'off' },
    ]
    await f.must({ kind: 'change-settings', instanceId: id, changes: list })
    expect(await shown('full_page_writes')).toBe('off')
    const back = list.map(({ name }) => ({ name, value: null }))
    await f.must({ kind: 'change-settings', instanceId: id, changes: back })
  })

  test('that needs a restart says so, shows in the report, and is in force after one', async () => {
    const done = await change('max_connections', '55')
    expect(done.result?.confirmed).toEqual([
      { name: 'max_connections', oldValue: '100', newValue: '100', pendingRestart: true },
    ])
    await f.waitForState(id, 'running')
    const list = await f.read.setting.list.query({ instanceId: asInstanceId(id), names: ['max_connections'] })
    expect(list.settings[0]).toMatchObject({ pendingRestart: true, managedValue: '55', fileError: null })
    await f.must({ kind: 'restart-instance', instanceId: id, mode: 'fast' })
    expect(await shown('max_connections')).toBe('55')
    expect((await f.observed(id))?.pendingRestart).toEqual([])
  })

  test('to null goes back to what holds without Floe', async () => {
    await change('work_mem', '12MB')
    const done = await change('work_mem', null)
    expect(done.result?.confirmed).toMatchObject([{ oldValue: '12MB', newValue: '4MB' }])
    expect(managedFile()).not.toContain('work_mem')
  })

  test('of what SHOW hides is confirmed with the values themselves', async () => {
    const done = await change('archive_command', 'cp %p /backup/%f')
    expect(done.result?.confirmed).toMatchObject([{ oldValue: '', newValue: 'cp %p /backup/%f' }])
    expect(await shown('archive_command')).toBe('(disabled)')
    expect((await change('archive_command', 'true')).result?.confirmed).toMatchObject([
      { oldValue: 'cp %p /backup/%f', newValue: 'true' },
    ])
    await change('tcp_keepalives_idle', '90s')
    const names = ['archive_command', 'tcp_keepalives_idle']
    const { settings } = await f.read.setting.list.query({ instanceId: asInstanceId(id), names })
    expect(settings.map((s) => [s.name, s.value, s.shown])).toEqual([
      ['archive_command', 'true', 'true'],
      ['tcp_keepalives_idle', '90', '90s'],
    ])
    for (const name of names) await change(name, null)
  })

  test('to a value that waits for a restart is told from the one that waited before', async () => {
    await change('max_prepared_transactions', '3')
    expect((await change('max_prepared_transactions', '3')).result?.confirmed).toMatchObject([
      { oldValue: '3', pendingRestart: true },
    ])
    const back = await change('max_prepared_transactions', '0')
    expect(back.result?.confirmed).toMatchObject([{ oldValue: '3', newValue: '0', pendingRestart: false }])
    await change('max_prepared_transactions', null)
  })

  test('keeps any text as it is', async () => {
    const text = "it's # a \\ prefix"
    expect((await change('log_line_prefix', text)).state).toBe('succeeded')
    expect(await shown('log_line_prefix')).toBe(text)
  })

  test('keeps what people wrote into postgresql.conf', async () => {
    const path = `${f.dataDirectory(id)}/postgresql.conf`
    appendFileSync(path, '# mine\nvacuum_cost_limit = 321\n')
    await change('vacuum_cost_delay', '3')
    expect(readFileSync(path, 'utf8')).toContain('# mine\nvacuum_cost_limit = 321\n')
    expect(await shown('vacuum_cost_limit')).toBe('321')
  })

  test('while it is stopped is tried by the binary, written, and in force after the start', async () => {
    await f.must({ kind: 'stop-instance', instanceId: id, mode: 'fast' })
    expect((await change('shared_buffers', '900TB')).state).toBe('failed')
    expect((await change('nosuch_setting', '1')).fault?.code).toBe('setting.unknown')
    expect((await change('shared_buffers', '48MB')).state).toBe('succeeded')
    await f.must({ kind: 'start-instance', instanceId: id })
    expect(await shown('shared_buffers')).toBe('48MB')
  })
})

describe('a refusal changes nothing', () => {
  test.each([
    ['an unknown name', 'nosuch_setting', '1', 'setting.unknown'],
    ['a value that does not parse', 'work_mem', '1 parsec', 'setting.invalid_value'],
    ['a value out of range', 'work_mem', '1kB', 'setting.invalid_value'],
    ['a value its own check refuses', 'default_tablespace', 'nowhere', 'setting.invalid_value'],
    ['a line break', 'log_line_prefix', "x'\nfsync = off", 'setting.invalid_value'],
    ['a fixed one', 'block_size', '16384', 'setting.read_only'],
    ['one that Floe stands on', 'port', '1', 'setting.reserved'],
    ['memory that is not there', 'shared_buffers', '2TB', 'setting.would_not_start'],
    ['a library that does not load', 'shared_preload_libraries', 'nosuch', 'setting.would_not_start'],
    ['a WAL limit below two segments', 'min_wal_size', '16MB', 'setting.would_not_start'],
    [
      'a library that no session could load',
      'session_preload_libraries',
      'nosuch',
      'setting.would_not_start',
    ],
    ['a contradiction', 'wal_level', 'minimal', 'setting.would_not_start'],
    ['a certificate that is not there', 'ssl_cert_file', 'nosuch.crt', 'setting.would_not_start'],
    ['TLS off, which members need', 'ssl', 'off', 'setting.reserved'],
  ])('%s', async (_, name, value, code) => {
    const before = managedFile()
    const done = await change(name, value)
    expect([done.state, done.fault?.code]).toEqual(['failed', code])
    expect(done.fault?.message).toMatch(/^[^A-Z]/)
    expect(managedFile()).toBe(before)
    expect((await f.observed(id))?.state).toBe('running')
  })

  test('one bad setting among good ones keeps the good ones back', async () => {
    const before = await shown('work_mem')
    const changes = [
      { name: 'work_mem', value: '33MB' },
      { name: 'shared_buffers', value: '2TB' },
    ]
    expect((await f.run({ kind: 'change-settings', instanceId: id, changes })).state).toBe('failed')
    expect(await shown('work_mem')).toBe(before)
  })

  test('a value that ALTER SYSTEM holds is not silently overridden', async () => {
    await f.query(id, "alter system set maintenance_work_mem = '77MB'")
    const done = await change('maintenance_work_mem', '88MB')
    expect(done.fault).toMatchObject({ code: 'setting.overridden' })
    expect(done.fault?.hint).toContain('ALTER SYSTEM RESET maintenance_work_mem')
  })

  test('a line after the include of floe.conf wins; that is said and the file is put back', async () => {
    appendFileSync(`${f.dataDirectory(id)}/postgresql.conf`, 'random_page_cost = 1.5\n')
    const before = managedFile()
    const done = await change('random_page_cost', '2')
    expect(done.fault?.code).toMatch(/^setting\.(overridden|not_applied)$/)
    expect(done.fault?.detail).toContain('postgresql.conf')
    expect(managedFile()).toBe(before)
  })

  test('settings under which no new connection can be opened are put back', async () => {
    // old sessions go on; only a new one shows it
    await f.query(
      id,
      `create function keep_out() returns event_trigger language plpgsql as $$
       begin if current_setting('work_mem') = '7777kB' then raise exception 'kept out'; end if; end $$;
       create event trigger keep_out on login execute function keep_out()`,
    )
    const before = managedFile()
    const done = await change('work_mem', '7777kB')
    expect(done.fault).toMatchObject({ code: 'setting.locks_out' })
    expect(done.fault?.detail).toContain('kept out')
    expect(managedFile()).toBe(before)
    await waitUntil(
      'the engine has read the former settings',
      async () => (await f.query(id, 'select 1 as one')).length === 1,
    )
    await f.query(id, 'drop event trigger keep_out; drop function keep_out')
  })

  test('a value that only the agent’s own sessions have is not taken for the instance’s', async () => {
    const done = await change('statement_timeout', '77s')
    expect(done.result?.confirmed).toMatchObject([{ newValue: '77s' }])
    await change('statement_timeout', null)
  })

  test('a dry run says the same and changes nothing', async () => {
    const before = managedFile()
    const { results } = await f.task.setting.check.query({
      instanceId: asInstanceId(id),
      changes: [
        { name: 'work_mem', value: '1 parsec' },
        { name: 'checkpoint_timeout', value: '10min' },
      ],
    })
    expect(results).toMatchObject([
      { name: 'work_mem', fault: { code: 'setting.invalid_value' } },
      { name: 'checkpoint_timeout', oldValue: '5min', newValue: '10min', impact: 'reload', fault: null },
    ])
    expect(managedFile()).toBe(before)
  })
})

describe('dry runs', () => {
  const dryRun = (signal?: AbortSignal) =>
    f.task.setting.check.query(
      { instanceId: asInstanceId(id), changes: [{ name: 'shared_buffers', value: '32MB' }] },
      { signal: signal as AbortSignal },
    )
  const codeOf = (run: Promise<unknown>) =>
    run.then(
      () => 'none',
      (error) => agentFault(error).code,
    )

  test('of many at once a few wait and the others are refused at once', async () => {
    const codes = await Promise.all(Array.from({ length: 12 }, () => codeOf(dryRun())))
    expect(codes.filter((c) => c === 'none')).toHaveLength(5)
    expect(codes.filter((c) => c === 'setting.too_many_checks')).toHaveLength(7)
  })

  test('end when nobody waits for them any more', async () => {
    const given = new AbortController()
    const runs = Array.from({ length: 5 }, () => codeOf(dryRun(given.signal)))
    await waitUntil('the queue is full', async () => (await codeOf(dryRun())) === 'setting.too_many_checks')
    given.abort()
    await Promise.all(runs)
    // had they gone on, these would find the queue full
    await waitUntil(
      'their places are free',
      async () => {
        const codes = await Promise.all(Array.from({ length: 5 }, () => codeOf(dryRun())))
        return codes.every((c) => c === 'none')
      },
      30_000,
    )
  })
})

test('a certificate of one’s own in the data directory is found, alone refused without its key, and served with it', async () => {
  const identity = await (await makeTestAuthority()).host(randomUUID())
  const [certificate, key] = identity.split(/(?=-----BEGIN PRIVATE KEY)/) as [string, string]
  for (const [name, text] of [
    ['server.crt', certificate],
    ['server.key', key],
  ] as const) {
    const path = `${f.dataDirectory(id)}/${name}`
    writeFileSync(path, text, { mode: 0o600 })
    giveTo(path, f.userOf(id))
  }
  const served = async () => {
    const socket = connect((await f.observed(id))?.port as number, '127.0.0.1')
    socket.write(Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]))
    await once(socket, 'data')
    const tls = connectTls({ socket, rejectUnauthorized: false })
    await once(tls, 'secureConnect')
    const { fingerprint256 } = tls.getPeerCertificate()
    tls.destroy()
    return fingerprint256
  }
  const fingerprint = (pem: string) => new X509Certificate(pem).fingerprint256
  const floes = fingerprint(readFileSync(`${f.dataDirectory(id)}/floe_server.pem`, 'utf8'))
  expect(await served()).toBe(floes)
  expect((await change('ssl_cert_file', 'server.crt')).fault?.code).toBe('setting.would_not_start')
  const both = (value: { certificate: string | null; key: string | null }) =>
    f.run({
      kind: 'change-settings',
      instanceId: id,
      changes: [
        { name: 'ssl_cert_file', value: value.certificate },
        { name: 'ssl_key_file', value: value.key },
      ],
    })
  expect((await both({ certificate: 'server.crt', key: 'server.key' })).fault).toBeNull()
  expect(await served()).toBe(fingerprint(certificate))
  expect((await both({ certificate: null, key: null })).fault).toBeNull()
  expect(await served()).toBe(floes)
})

describe('the I/O sizes of our engine', () => {
  test('are settings like any other: shown, changed, refused out of range', async () => {
    expect(await shown('polar_bulk_extend_size')).toBe('4MB')
    const done = await change('polar_bulk_extend_size', '2MB')
    expect(done.result?.confirmed).toMatchObject([
      { oldValue: '4MB', newValue: '2MB', pendingRestart: false },
    ])
    expect(await shown('polar_bulk_extend_size')).toBe('2MB')
    expect((await change('polar_bulk_extend_size', '64MB')).fault?.code).toBe('setting.invalid_value')
    expect((await change('polar_nosuch', '1')).fault?.code).toBe('setting.unknown')
  })

  test('that only a start or a reload reads are refused out of range too', async () => {
    expect((await change('polar_recovery_bulk_extend_size', '64MB')).state).toBe('failed')
    expect((await change('polar_recovery_bulk_extend_size', '1MB')).fault).toBeNull()
    expect(await shown('polar_recovery_bulk_extend_size')).toBe('1MB')
  })

  test('can be wished for a new instance', async () => {
    const wished = await f.createRunning({ settings: { polar_bulk_read_size: '256kB' } })
    expect(await f.query(wished, "select current_setting('polar_bulk_read_size') as size")).toEqual([
      { size: '256kB' },
    ])
  })
})

describe('the catalogue', () => {
  test('is the binary’s own: every setting, with unit, range, choices and context', async () => {
    const { settings } = await f.read.setting.list.query({ instanceId: asInstanceId(id) })
    const [counted] = await f.query<{ n: number }>(id, 'select count(*)::int as n from pg_settings')
    expect(settings).toHaveLength(counted?.n as number)
    const find = (name: string) => settings.find((s) => s.name === name)
    expect(find('work_mem')).toMatchObject({ unit: 'kB', type: 'integer', min: '64', context: 'user' })
    expect(find('wal_level')).toMatchObject({ type: 'enum', choices: ['minimal', 'replica', 'logical'] })
  })

  test('of a stopped instance is not made up', async () => {
    const stopped = await f.create()
    const fault = await f.read.setting.list.query({ instanceId: asInstanceId(stopped) }).then(
      () => null,
      (error) => agentFault(error),
    )
    expect(fault?.code).toBe('instance.not_running')
  })
})

test('an engine that does not start after all says why, with the line', async () => {
  await f.must({ kind: 'stop-instance', instanceId: id, mode: 'fast' })
  appendFileSync(`${f.dataDirectory(id)}/postgresql.conf`, 'work_mem = a lot\n')
  const done = await f.run({ kind: 'start-instance', instanceId: id })
  expect(done.fault?.code).toBe('instance.not_started')
  expect(done.fault?.detail).toMatch(/postgresql\.conf" line \d+/)
  const seen = await f.observed(id)
  expect(seen?.state).toBe('crashed')
  expect(seen?.because).toContain('postgresql.conf')
})
