import { statSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { afterAll, describe, expect } from 'vitest'
import { until } from '../launcher/private-home'
import {
  answerOf,
  ask,
  attempt,
  call,
  controlSql,
  findSockets,
  gotIn,
  home,
  it,
  must,
  type Role,
  run,
  signIn,
  sql,
} from './victim'

// Somebody who may sign in, with less right than they want.

const as = (role: Role) => ({ token: it.people[role].token })
const auditRows = async () => Number(await controlSql('select count(*) from audit_event'))
const auth = (cookie: string, path: string, body: unknown) =>
  ask(`/api/auth${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: it.url, cookie },
    body: JSON.stringify(body),
  })

describe('wants more than their role', () => {
  attempt(
    'neighbour of 17',
    'no procedure does for a viewer or an operator what their role does not name',
    async () => {
      const beta = { instanceId: it.beta.instanceId }
      const table = { database: 'postgres', table: 16_384, tableName: 'public.t' }
      const result = { database: 'postgres', result: 16_385, resultName: 'public.r' }
      const changes: [Role, string, unknown][] = [
        ['viewer', 'instance.create', { name: 'taken' }],
        ['viewer', 'instance.stop', { ...beta, mode: 'immediate' }],
        ['viewer', 'instance.delete', { ...beta, confirmName: 'beta' }],
        ['viewer', 'instance.limit', { ...beta, changes: { cpu: 0.1 } }],
        ['viewer', 'instance.stallLength', { ...beta, after: '60min' }],
        ['viewer', 'host.check', { hostId: it.hostId }],
        ['viewer', 'host.upgrade', { hostId: it.hostId, build: 'release-0', confirmName: 'x' }],
        ['viewer', 'host.cancelUpgrade', { hostId: it.hostId }],
        ['viewer', 'setting.set', { scope: beta, changes: [{ name: 'work_mem', value: '8MB' }] }],
        ['viewer', 'incident.acknowledge', { incidentId: '00000000-0000-7000-8000-000000000000' }],
        ['operator', 'host.add', { name: 'taken' }],
        [
          'operator',
          'host.storePackagePiece',
          { digest: 'a'.repeat(64), number: 0, data: Buffer.from('evil').toString('base64') },
        ],
        [
          'operator',
          'host.upgradeWithPackages',
          {
            ...{ hostId: it.hostId, build: 'release-0', confirmName: 'x' },
            packages: [
              {
                ...{ name: 'floe-agent', version: '9', architecture: 'amd64', distribution: 'debian-12' },
                ...{ sizeBytes: 4, digest: 'a'.repeat(64) },
              },
            ],
          },
        ],
        ['operator', 'retention.set', { kind: 'sample-1s', keepSeconds: 7200 }],
        ['operator', 'webhook.add', { url: 'https://evil.example/' }],
        ['operator', 'host.revoke', { name: 'x', confirmName: 'x' }],
        ['operator', 'host.powerSupply', { hostId: it.beta.instanceId, powerSupply: 'x' }],
        ['viewer', 'flashback.preview', { ...beta, ...table, at: '2026-01-01T00:00:00Z' }],
        ['viewer', 'flashback.drop', { ...beta, ...result }],
        ['viewer', 'role.create', { ...beta, role: 'taken' }],
        ['viewer', 'role.change', { ...beta, role: 'postgres', login: false }],
        ['viewer', 'role.drop', { ...beta, role: 'app', confirmRole: 'app' }],
        ['viewer', 'token.create', { name: 'taken', role: 'viewer' }],
        ['operator', 'token.create', { name: 'taken', role: 'admin' }],
        ['operator', 'token.create', { name: 'taken', role: 'owner' }],
        ['viewer', 'cluster.deletionProtection', { clusterId: it.beta.instanceId, on: false }],
        ['viewer', 'cluster.recover', { clusterId: it.beta.instanceId, confirmName: 'beta' }],
        ['operator', 'cluster.recover', { clusterId: it.beta.instanceId, confirmName: 'beta' }],
        [
          'operator',
          'cluster.recover',
          { clusterId: it.beta.instanceId, confirmName: 'beta', backupDirectory: '/srv/base' },
        ],
        ['operator', 'flashback.export', { ...beta, ...result }],
        ['operator', 'flashback.rows', { operationId: '00000000-0000-4000-8000-000000000000' }],
      ]
      for (const [role, path, input] of changes) {
        const { status } = await call(as(role), 'mutation', path, input)
        gotIn(status === 200, `${role} called ${path}`)
      }
      for (const role of ['viewer', 'operator'] as const) {
        const { status } = await ask(
          '/api/flashback/download?operation=00000000-0000-4000-8000-000000000000',
          { headers: { authorization: `Bearer ${it.people[role].token}` } },
        )
        gotIn(status !== 403, `${role} was answered ${status} where rows are downloaded`)
      }
      for (const authorization of ['Bearer x'.padEnd(40, 'x'), 'Bearer ', 'Basic eDp4'])
        gotIn(
          (await ask('/api/trpc/instance.list', { headers: { authorization } })).status === 200,
          authorization,
        )
    },
  )

  attempt(
    'neighbour of 17',
    'each procedure of flashbacks is for those whom its right names, and for nobody unknown',
    async () => {
      // nobody's instance and nobody's operation: whoever may ask is told that there is none
      const none = '00000000-0000-4000-8000-000000000000'
      const database = { instanceId: none, database: 'postgres' }
      const table = { ...database, table: 16_384, tableName: 'public.t' }
      const result = { ...database, result: 16_385, resultName: 'public.r' }
      const pair = { ...result, tableName: 'public.t' }
      const at = '2026-01-01T00:00:00Z'
      const merge = { ...pair, insertMissing: true, restoreChanged: false, deleteAdded: false }
      const backup = { backupDirectory: '/srv/base', walDirectory: '/srv/wal' }
      const procedures: ['query' | 'mutation', string, Role, unknown][] = [
        ['query', 'read', 'viewer', { instanceId: none }],
        ['query', 'tables', 'viewer', { instanceId: none }],
        ['query', 'activity', 'viewer', database],
        ['query', 'lost', 'viewer', database],
        ['query', 'results', 'viewer', database],
        ['mutation', 'prepare', 'operator', database],
        ['mutation', 'preview', 'operator', { ...table, at }],
        ['mutation', 'to', 'operator', { ...table, at }],
        ['mutation', 'beforeDrop', 'operator', { ...table, lsn: '0/1' }],
        ['mutation', 'compare', 'operator', pair],
        ['mutation', 'merge', 'operator', merge],
        ['mutation', 'merge', 'operator', { ...merge, dryRun: true }],
        ['mutation', 'merge', 'admin', { ...merge, dryRun: true, condition: 'true' }],
        ['mutation', 'swap', 'operator', { ...pair, confirmName: 'beta' }],
        ['mutation', 'drop', 'operator', result],
        ['mutation', 'export', 'admin', result],
        ['mutation', 'rows', 'admin', { operationId: none }],
        ['mutation', 'restore', 'admin', { ...database, tableName: 'public.t', at, ...backup }],
      ]
      const roles = ['viewer', 'operator', 'admin'] as const
      for (const [type, name, least, input] of procedures) {
        const path = `flashback.${name}`
        for (const role of roles) {
          const { status, text } = await call(as(role), type, path, input)
          const may = roles.indexOf(role) >= roles.indexOf(least as never)
          gotIn(!may && status !== 403, `${role} was answered ${status} by ${path}: ${text.slice(0, 100)}`)
          // else a refusal would be no evidence
          if (may) {
            expect(text, `${path} as ${role}`).not.toMatch(/may not do this/)
            expect([200, 401, 403, 500]).not.toContain(status)
          }
        }
        const unknown = await call(null, type, path, input)
        gotIn(unknown.status !== 401, `nobody was answered ${unknown.status} by ${path}`)
        // a link could carry a question, and a question leaves no audit row
        if (type === 'mutation')
          gotIn((await call(as('admin'), 'query', path, input)).status === 200, `${path} can be asked`)
      }
    },
  )

  attempt('17', 'settings that run programs or load libraries are not an operator’s', async () => {
    const changes = [
      ['archive_command', 'touch /tmp/x'],
      ['restore_command', 'touch /tmp/x'],
      ['recovery_end_command', 'touch /tmp/x'],
      ['archive_cleanup_command', 'touch /tmp/x'],
      ['ssl_passphrase_command', 'touch /tmp/x'],
      ['shared_preload_libraries', 'auto_explain'],
      ['session_preload_libraries', '/tmp/x.so'],
      ['local_preload_libraries', 'x'],
      ['dynamic_library_path', '/tmp'],
      ['jit_provider', '/tmp/x'],
    ] as const
    for (const [name, value] of changes) {
      const input = { scope: { instanceId: it.beta.instanceId }, changes: [{ name, value }] }
      const { status, text } = await call(as('operator'), 'mutation', 'setting.set', input)
      gotIn(status === 200, `operator set ${name}: ${text.slice(0, 100)}`)
    }
    // at creation, too
    const { status, text } = await call(as('operator'), 'mutation', 'instance.create', {
      name: 'armed',
      settings: { archive_command: 'touch /tmp/x' },
    })
    gotIn(status === 200, `operator created an instance with archive_command: ${text.slice(0, 100)}`)
  })

  attempt(
    'neighbour of 14',
    'no number is a limit that stops an engine, or that no kernel knows',
    async () => {
      const tried: Record<string, number[]> = {
        cpu: [-1, 0, 1e-300, 1e6, 1e308],
        memoryMax: [1, 1e6, 1e308],
        memoryHigh: [0.5, 2 ** 60],
        dataWriteIops: [-1, 0.5, 1, 1e300],
        walReadBytes: [1],
      }
      for (const [name, values] of Object.entries(tried))
        for (const value of values) {
          const input = { instanceId: it.beta.instanceId, changes: { [name]: value } }
          const { status, text } = await call(as('operator'), 'mutation', 'instance.limit', input)
          gotIn(status === 200 || status >= 500, `${name} ${value} answered ${status}: ${text.slice(0, 100)}`)
        }
    },
  )

  attempt('24', 'a viewer sees no value that only a superuser sees', async () => {
    const secret = 'hunter2-of-the-key'
    const beta = { instanceId: it.beta.instanceId }
    await must(
      sql(it.beta, `alter system set ssl_passphrase_command = 'echo ${secret}'; select pg_reload_conf()`),
    )
    const list = async (role: 'admin' | 'viewer') =>
      (await call(as(role), 'query', 'setting.list', { scope: beta })).text
    try {
      // else there would be nothing to hide
      await until('an admin sees the value', async () => (await list('admin')).includes(secret), 10_000)
      gotIn((await list('viewer')).includes(secret), 'setting.list shows it to a viewer')
      for (const path of ['setting.history', 'setting.drift', 'setting.revisions', 'operation.list']) {
        const { status, text } = await call(as('viewer'), 'query', path, { ...beta, scope: beta })
        expect(status, text).toBe(200)
        gotIn(text.includes(secret), `${path} shows it to a viewer`)
      }
    } finally {
      await must(sql(it.beta, 'alter system reset ssl_passphrase_command; select pg_reload_conf()'))
    }
  })

  attempt('9', 'a check of settings leaves an audit row', async () => {
    const input = {
      scope: { instanceId: it.beta.instanceId },
      changes: [{ name: 'work_mem', value: '9MB' }],
    }
    // rows of this very question: that others write some meanwhile is no evidence
    const rows = async () =>
      Number(
        await controlSql(
          `select count(*) from audit_event where action = 'setting.check' and outcome = 'allowed'
              and "objectId" = '${it.beta.instanceId}' and "actorName" = 'operator'`,
        ),
      )
    const before = await rows()
    const asked = await call(as('operator'), 'mutation', 'setting.check', input)
    expect(asked.status, asked.text).toBe(200)
    // it was carried out: an engine has said what the value in force is
    expect(answerOf<{ members: unknown[] }>(asked).members).toMatchObject([
      { results: [{ newValue: '9MB', fault: null }] },
    ])
    gotIn((await rows()) !== before + 1, 'no audit row')
    const byQuery = await call(as('operator'), 'query', 'setting.check', input)
    gotIn(byQuery.status === 200, 'a check is started by a query, which leaves no row')
  })
})

describe('changes accounts', () => {
  attempt('13', 'every change of an account leaves an audit row', async () => {
    const { cookie, status } = await signIn('admin')
    expect(status).toBe(200)
    const member = await controlSql(`select id from member where "userId" = '${it.people.viewer.userId}'`)
    const organization = await controlSql('select id from organization limit 1')
    const tried: [string, unknown][] = [
      [
        '/organization/update-member-role',
        { memberId: member, role: 'operator', organizationId: organization },
      ],
      [
        '/organization/update-member-role',
        { memberId: member, role: 'viewer', organizationId: organization },
      ],
      [
        '/organization/invite-member',
        { email: 'guest@example.org', role: 'viewer', organizationId: organization },
      ],
      ['/organization/update', { data: { name: 'Renamed' }, organizationId: organization }],
      ['/update-user', { name: 'admin' }],
      ['/change-password', { currentPassword: it.passphrase, newPassword: `${it.passphrase}!` }],
      ['/change-password', { currentPassword: `${it.passphrase}!`, newPassword: it.passphrase }],
      ['/revoke-other-sessions', {}],
      ['/sign-out', {}],
    ]
    for (const [path, body] of tried) {
      const before = await auditRows()
      const answer = await auth(cookie, path, body)
      gotIn(answer.status === 200 && (await auditRows()) === before, `${path} leaves no audit row`)
    }
    // and by the console's own procedures
    const own: [string, unknown][] = [
      ['account.rename', { name: 'admin' }],
      ['account.changePassphrase', { current: it.passphrase, next: `${it.passphrase}!` }],
      ['account.changePassphrase', { current: `${it.passphrase}!`, next: it.passphrase }],
      ['account.changePassphrase', { current: 'not the passphrase', next: it.passphrase }],
      ['account.endOtherSessions', undefined],
    ]
    const again = await signIn('admin')
    for (const [path, input] of own) {
      const before = await auditRows()
      const { status: answered } = await call({ cookie: again.cookie }, 'mutation', path, input)
      // a version without the procedure has nothing to write down
      gotIn(answered !== 404 && (await auditRows()) === before, `${path} (${answered}) leaves no audit row`)
    }
  })

  attempt('14', 'a name is short, and nobody takes the name of Floe’s own processes', async () => {
    const { cookie } = await signIn('viewer')
    for (const name of [
      'x'.repeat(1_500_000),
      'x'.repeat(500),
      'controller',
      'Controller ',
      'a\nb',
      '\u202eadmin',
    ]) {
      await auth(cookie, '/update-user', { name })
      await call({ cookie }, 'mutation', 'account.rename', { name })
      await call({ cookie }, 'mutation', 'instance.create', { name: 'denied' })
      const stored = await controlSql(`select name from "user" where id = '${it.people.viewer.userId}'`)
      gotIn(
        stored.length > 200 || stored.trim().toLowerCase() === 'controller' || /[\n\u202e]/.test(stored),
        `the name is now ${JSON.stringify(stored.slice(0, 40))} (${stored.length})`,
      )
    }
    const longest = Number(await controlSql(`select coalesce(max(length("actorName")), 0) from audit_event`))
    gotIn(longest > 200, `an audit row holds a name of ${longest}`)
  })

  attempt('14', 'somebody who is refused again and again does not fill the audit trail', async () => {
    const before = await auditRows()
    for (let i = 0; i < 20; i++)
      await Promise.all(
        Array.from({ length: 20 }, () =>
          call(as('viewer'), 'mutation', 'instance.create', { name: 'denied' }),
        ),
      )
    const grown = (await auditRows()) - before
    expect(grown).toBeGreaterThan(0)
    gotIn(grown > 200, `400 refusals left ${grown} rows`)
  })

  attempt('16', 'a changed passphrase ends the other sessions', async () => {
    const [one, two] = [await signIn('operator'), await signIn('operator')]
    expect([one.status, two.status]).toEqual([200, 200])
    const passphrase = `${it.passphrase} anew`
    const changed = await auth(one.cookie, '/change-password', {
      currentPassword: it.passphrase,
      newPassword: passphrase,
    })
    if (changed.status === 200) {
      const still = await call({ cookie: two.cookie }, 'query', 'account.me')
      const again = await signIn('operator', passphrase)
      await auth(again.cookie, '/change-password', {
        currentPassword: passphrase,
        newPassword: it.passphrase,
      })
      gotIn(still.status === 200, 'the other session is still good')
    } else {
      // better-auth’s own door may be shut where Floe has one of its own
      const own = await call({ cookie: one.cookie }, 'mutation', 'account.changePassphrase', {
        current: it.passphrase,
        next: passphrase,
      })
      expect(own.status, `no way to change a passphrase: ${changed.status} ${own.text}`).toBe(200)
      const still = await call({ cookie: two.cookie }, 'query', 'account.me')
      await controlSql(
        `update account set password = (select password from account where "userId" = '${it.people.owner.userId}') where "userId" = '${it.people.operator.userId}'`,
      )
      gotIn(still.status === 200, 'the other session is still good')
    }
  })
})

describe('sends Floe elsewhere', () => {
  attempt('19', 'a webhook reaches no address of the machine itself', async () => {
    const got: string[] = []
    const receiver = createServer((incoming, response) => {
      got.push(`${incoming.method} ${incoming.headers.host}`)
      response.end('ok')
    })
    await new Promise<void>((resolve) => receiver.listen(0, '::', resolve))
    const port = (receiver.address() as { port: number }).port
    // where config.json lets webhooks go: it sends everybody on to where they may not
    const sentOn: string[] = []
    const redirect = createServer((incoming, response) => {
      sentOn.push(`${incoming.method} ${incoming.url}`)
      response.writeHead(307, { location: `http://127.0.0.1:${port}/` })
      response.end()
    })
    await new Promise<void>((resolve) => redirect.listen(0, it.webhookAddress, resolve))
    const allowed = `http://${it.webhookAddress}:${(redirect.address() as { port: number }).port}/allowed`
    const hosts = [
      '127.0.0.1',
      'localhost',
      '[::1]',
      '[::ffff:127.0.0.1]',
      '0.0.0.0',
      '2130706433',
      '0x7f.1',
      '127.1',
      '169.254.169.254',
      'localhost.',
      '[::]',
    ]
    // each leads to the receiver, but for an address that nobody has here and a name that not every machine knows
    for (const host of hosts.filter((h) => h !== '169.254.169.254' && h !== 'localhost.'))
      expect((await fetch(`http://${host}:${port}/`)).status, host).toBe(200)
    got.length = 0
    const added: string[] = []
    try {
      for (const url of [allowed, ...hosts.map((host) => `http://${host}:${port}/hook`)]) {
        const answer = await call(as('owner'), 'mutation', 'webhook.add', { url })
        expect(answer.status, `${url}: ${answer.text}`).toBe(200)
        const { webhookId } = answerOf<{ webhookId: string }>(answer)
        added.push(webhookId)
        expect((await call(as('owner'), 'mutation', 'webhook.test', { webhookId })).status).toBe(200)
      }
      const tried = async () =>
        Number(
          await controlSql(
            `select count(distinct "webhookId") from webhook_delivery
              where attempts > 0 and "webhookId"::text in (${added.map((id) => `'${id}'`).join(',')})`,
          ),
        )
      await until('each was tried', async () => got.length > 0 || (await tried()) === added.length, 20_000)
      gotIn(got.length > 0, `received ${got.join(', ')}`)
      // what may be reached is: messages are sent, and how that one fared is what a viewer is not to read
      expect(sentOn).toContain('POST /allowed')
      const [toAllowed] = added
      const { text: shown } = await call(as('owner'), 'query', 'webhook.deliveries', { webhookId: toAllowed })
      expect(shown).toContain('it answered 307')
      for (const webhookId of added) {
        const { status, text } = await call(as('viewer'), 'query', 'webhook.deliveries', { webhookId })
        gotIn(
          status === 200 && /ECONNREFUSED|answered \d+|other side/.test(text),
          'a viewer reads how a port answered',
        )
      }
    } finally {
      for (const webhookId of added) await call(as('owner'), 'mutation', 'webhook.remove', { webhookId })
      receiver.close()
      redirect.close()
    }
  })
})

describe('covers their traces', () => {
  attempt('20', 'the audit trail is not shortened by an admin, nor below 90 days by the owner', async () => {
    const set = (role: Role, kind: string, days: number) =>
      call(as(role), 'mutation', 'retention.set', { kind, keepSeconds: days * 86_400 })
    const kept = async () =>
      answerOf<{ retention: { kind: string; keepSeconds: number }[] }>(
        await call(as('owner'), 'query', 'retention.list'),
      ).retention.find((r) => r.kind === 'audit')?.keepSeconds
    // an admin does set what is an admin's, and the owner does shorten the trail to 90 days
    expect((await set('admin', 'operation', 90)).status).toBe(200)
    expect((await set('owner', 'audit', 90)).status).toBe(200)
    expect(await kept()).toBe(90 * 86_400)
    expect((await set('owner', 'audit', 400)).status).toBe(200)
    for (const [role, days] of [
      ['admin', 1],
      ['admin', 200],
      ['owner', 1],
      ['owner', 89],
    ] as const) {
      const { status } = await set(role, 'audit', days)
      gotIn(status === 200 || (await kept()) !== 400 * 86_400, `${role} set it to ${days} days`)
    }
  })

  attempt('20', 'the roles of web and controller cannot change or remove an audit row', async () => {
    const socket = findSockets(it.socketDirectory).find((p) =>
      p.endsWith(`/.s.PGSQL.${it.controlPort}`),
    ) as string
    const roles = (
      await controlSql(
        `select rolname from pg_roles where rolname in ('console', 'floe_web', 'floe_controller') and (rolcanlogin or rolname <> 'console')`,
      )
    ).split('\n')
    expect(roles.length).toBeGreaterThan(0)
    const tried = (role: string, statement: string, uid: number) =>
      run(
        join(it.enginePrefix, 'bin/psql'),
        [
          ...['-XAtqw', '-v', 'ON_ERROR_STOP=1', '-h', join(socket, '..'), '-p', `${it.controlPort}`],
          ...['-U', 'floe', '-d', it.controlName, '-c', `begin; set role ${role}; ${statement}; rollback`],
        ],
        { uid },
      )
    const statements = [
      `update audit_event set actor = 'x'`,
      'delete from audit_event',
      'truncate audit_event',
      'drop table audit_event cascade',
      'alter table audit_event disable trigger all',
      'set session_replication_role = replica',
    ]
    // who owns the table does each of them, past its triggers: none is refused for how it is written
    for (const statement of statements) {
      const owned = await tried('floe', `set local session_replication_role = replica; ${statement}`, 0)
      expect(owned.status, `${statement}: ${owned.err}`).toBe(0)
    }
    for (const role of roles) {
      // and the role is really taken: it reads the trail
      const reads = await tried(role, 'select current_user, count(*) > 0 from audit_event', 0)
      expect(reads.out, reads.err).toContain(`${role}|t`)
      for (const statement of statements)
        for (const uid of [0, statSync(socket).uid]) {
          const { status, err } = await tried(role, statement, uid)
          gotIn(status === 0, `role ${role}: ${statement}`)
          if (uid === 0) expect(err).toMatch(/permission denied|must be owner/)
        }
    }
  })

  attempt('20', 'an audit row that was changed past everything is found', async () => {
    const whole = await home.run(['audit', 'verify'])
    gotIn(whole.status === 2, 'there is no ./floe audit verify')
    expect(whole.status, whole.stderr).toBe(0)
    const id = await controlSql('select max(id) - 3 from audit_event')
    const former = await controlSql(`select "actorName" from audit_event where id = ${id}`)
    const change = (name: string) =>
      controlSql(
        `begin; set session_replication_role = replica; update audit_event set "actorName" = '${name.replaceAll("'", "''")}' where id = ${id}; commit`,
      )
    await change('somebody else')
    const stored = await controlSql(`select "actorName" from audit_event where id = ${id}`)
    const found = await home.run(['audit', 'verify'])
    await change(former)
    expect([former === 'somebody else', stored]).toEqual([false, 'somebody else'])
    gotIn(found.status === 0, 'the change was not found')
    // it is that row that was found, and nothing else: put back, the trail is whole
    expect(`${found.stdout}${found.stderr}`).toContain(id)
    const again = await home.run(['audit', 'verify'])
    expect(again.status, again.stderr).toBe(0)
  })
})

afterAll(async () => {
  await controlSql(`update "user" set name = 'viewer' where id = '${it.people.viewer.userId}'`)
})
