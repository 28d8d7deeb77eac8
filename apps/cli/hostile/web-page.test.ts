import { request } from 'node:http'
import { describe, expect } from 'vitest'
import { ask, attempt, call, gotIn, home, it, residentBytes, signIn } from './victim'

// A page of another site in the browser of somebody who is signed in, and whoever reaches the console's port.

const EVIL = 'https://evil.example'

/** Sends a body in pieces until the server ends it or so many bytes are gone; answers the status, 0 for a cut connection. */
function flood(
  path: string,
  bytes: number,
  headers: Record<string, string> = {},
): Promise<{ status: number; sent: number }> {
  return new Promise((resolve) => {
    let sent = 0
    let done = false
    const piece = Buffer.alloc(1 << 20, '{"a":"')
    const end = (status: number) => {
      if (done) return
      done = true
      resolve({ status, sent })
      stream.destroy()
    }
    const stream = request(
      `${it.url}${path}`,
      { method: 'POST', headers: { 'content-type': 'application/json', origin: it.url, ...headers } },
      (response) => end(response.statusCode ?? 0),
    )
    stream.on('error', () => end(0))
    stream.setTimeout(15_000, () => end(-1))
    const more = () => {
      if (done) return
      if (sent >= bytes) {
        stream.end()
        return
      }
      sent += piece.length
      if (stream.write(piece)) setImmediate(more)
      else stream.once('drain', more)
    }
    more()
  })
}

describe('sends requests from another site', () => {
  const mutations: [string, unknown][] = [
    ['instance.create', { name: 'forged' }],
    ['instance.stop', { instanceId: it.beta.instanceId, mode: 'immediate' }],
    ['instance.delete', { instanceId: it.beta.instanceId, confirmName: 'beta' }],
    ['instance.limit', { instanceId: it.beta.instanceId, changes: { cpu: 0.05 } }],
    ['host.check', { hostId: it.hostId }],
    ['host.add', { name: 'forged' }],
    ['retention.set', { kind: 'sample-1s', keepSeconds: 3600 }],
    ['webhook.add', { url: 'https://evil.example/' }],
  ]
  attempt(
    '9',
    'no change is made with the owner’s cookie from another origin, whatever it states',
    async () => {
      const { cookie } = await signIn('owner')
      expect(cookie).not.toBe('')
      const forged: Record<string, string>[] = [
        { origin: EVIL },
        { origin: 'null' },
        { origin: it.url.replace(/\d+$/, '1') },
        { origin: EVIL, 'sec-fetch-site': 'same-origin' },
        { origin: EVIL, 'x-forwarded-host': new URL(EVIL).host },
        { origin: EVIL, host: new URL(EVIL).host },
        { origin: EVIL, 'content-type': 'text/plain' },
        { origin: EVIL, 'x-forwarded-proto': 'https', forwarded: 'host=evil.example' },
      ]
      for (const headers of forged)
        for (const [path, input] of mutations) {
          const { status, text } = await call({ cookie }, 'mutation', path, input, headers)
          gotIn(status === 200, `${path} with ${JSON.stringify(headers)}: ${text.slice(0, 100)}`)
        }
      for (const [path, input] of mutations) {
        const { status } = await call({ cookie }, 'query', path, input, { 'sec-fetch-site': 'cross-site' })
        gotIn(status === 200, `GET ${path}`)
      }
      const names = (await home.json<{ name: string }[]>('instance', 'list')).map((i) => i.name)
      expect(names).toContain('beta')
      expect(names).not.toContain('forged')
    },
  )

  attempt('12', 'sign-ins that another site sends keep nobody out', async () => {
    for (let i = 0; i < 12; i++) await signIn('owner', 'not the passphrase', { origin: EVIL })
    const { status } = await signIn('owner')
    gotIn(status !== 200, `the owner’s right passphrase was answered ${status}`)
  })

  attempt(
    '12',
    'failures of one peer keep nobody out who comes from where they signed in before',
    async () => {
      const before = await signIn('admin')
      expect(before.status).toBe(200)
      const guesses = Array.from({ length: 20 }, (_, i) =>
        signIn('admin', 'wrong passphrase!', { 'x-forwarded-for': `10.9.9.${i}` }),
      )
      // whoever guesses is kept waiting, and beyond that refused; else nobody would be kept out by anything
      expect((await Promise.any(guesses.map(refusedOnly))).status).toBe(429)
      const { status } = await signIn('admin', it.passphrase, { cookie: before.cookie })
      gotIn(status !== 200, `the admin was answered ${status} in a browser that is known`)
      await Promise.all(guesses)
      const begun = performance.now()
      const late = await signIn('admin')
      gotIn(late.status !== 200, `the admin was answered ${late.status} in a new browser`)
      expect(performance.now() - begun).toBeGreaterThan(990)
    },
  )

  attempt('26', 'the session cookie is for HTTP only, and what it holds is not in the answer', async () => {
    const { status, text, headers } = await ask('/api/auth/sign-in/email', {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin: it.url },
      body: JSON.stringify({ email: it.people.viewer.email, password: it.passphrase }),
    })
    expect(status).toBe(200)
    for (const cookie of headers.getSetCookie().filter((c) => /session/.test(c)))
      gotIn(
        !/httponly/i.test(cookie) || !/samesite=(lax|strict)/i.test(cookie),
        cookie.replace(/=[^;]+/, '=…'),
      )
    const token = decodeURIComponent(/session_token=([^;.]+)/.exec(headers.getSetCookie().join())?.[1] ?? '')
    expect(token).not.toBe('')
    gotIn(text.includes(token), 'the answer holds the session token')
  })

  attempt('26', '/healthz tells a stranger no counts and no faults', async () => {
    const { text } = await ask('/healthz')
    gotIn(/"(instances|operations|fault|code|hosts|version)"/i.test(text), text.slice(0, 200))
  })
})

/** One of many answers that says no; the others are as if they never came. */
async function refusedOnly<Answer extends { status: number }>(asked: Promise<Answer>): Promise<Answer> {
  const answer = await asked
  if (answer.status !== 429) throw new Error(`answered ${answer.status}`)
  return answer
}

describe('sends too much', () => {
  attempt('10', 'bodies of 200 MB are refused before they fill memory', async () => {
    const pid = await home.pidOf('web')
    const before = residentBytes(pid)
    let most = before
    const timer = setInterval(() => {
      most = Math.max(most, residentBytes(pid))
    }, 100)
    try {
      const { cookie } = await signIn('viewer')
      const paths: [string, Record<string, string>][] = [
        ['/api/enrol', {}],
        ['/api/trpc/setup.complete', {}],
        ['/api/auth/sign-in/email', {}],
        ['/api/trpc/instance.create', { cookie }],
        ['/api/auth/update-user', { cookie }],
        ['/', {}],
      ]
      for (const [path, headers] of paths) {
        const { sent } = await flood(path, 200e6, headers)
        gotIn(sent >= 190e6, `${path} took ${Math.round(sent / 1e6)} MB`)
      }
      gotIn(most - before > 150e6, `web grew by ${Math.round((most - before) / 1e6)} MB`)
    } finally {
      clearInterval(timer)
    }
    expect(await home.pidOf('web')).toBe(pid)
  })

  attempt('22', 'a batch asks only so many questions', async () => {
    const many = Array.from({ length: 900 }, () => 'setup.status').join(',')
    const { status } = await ask(`/api/trpc/${many}?batch=1&input=%7B%7D`)
    gotIn(status === 200 || status === 207, `900 questions at once were answered ${status}`)
  })

  attempt('25', 'a thousand connections at once do not keep the console from answering', async () => {
    const { Agent } = await import('node:http')
    const agent = new Agent({ keepAlive: true, maxSockets: 1_000 })
    await Promise.all(
      Array.from(
        { length: 600 },
        () =>
          new Promise<void>((resolve) => {
            const asked = request(`${it.url}/healthz`, { agent, timeout: 20_000 }, (response) => {
              response.resume()
              response.on('end', resolve)
            })
            asked.on('error', () => resolve())
            asked.on('timeout', () => asked.destroy())
            asked.end()
          }),
      ),
    )
    agent.destroy()
    const { status } = await ask('/healthz', { timeoutMs: 10_000 })
    gotIn(status !== 200, `/healthz answered ${status}`)
  })
})

describe('sends odd names in every field', () => {
  const odd = [
    '\u0000',
    'a\u0000b',
    '../../etc/passwd',
    '-rf',
    '$(id)',
    '`id`',
    "';drop table audit_event;--",
    'a\nb',
    '\u202ename',
    'x'.repeat(300),
    '{{7*7}}',
    '<script>alert(1)</script>',
    ' ',
    '\ud800',
    '%00',
    'ﬁoe',
  ]
  attempt('21', 'no odd text is an internal error, makes anything, or leaves out an audit row', async () => {
    const token = { token: it.people.owner.token }
    const names = async () =>
      (await home.json<{ name: string }[]>('instance', 'list')).map((i) => i.name).sort()
    const before = await names()
    const asked: ['query' | 'mutation', string, (text: string) => unknown][] = [
      ['mutation', 'instance.create', (name) => ({ name })],
      [
        'mutation',
        'instance.create',
        (idempotencyKey) => ({ name: 'odd', idempotencyKey, hostId: it.hostId.replace(/./g, '0') }),
      ],
      ['mutation', 'instance.start', (instanceId) => ({ instanceId })],
      ['query', 'cluster.show', (cluster) => ({ cluster })],
      ['query', 'cluster.show', (name) => ({ name })],
      ['query', 'instance.show', (name) => ({ name })],
      ['query', 'instance.show', (instanceId) => ({ instanceId })],
      ['query', 'instance.limits', (instanceId) => ({ instanceId })],
      ['query', 'stall.list', (instanceId) => ({ instanceId })],
      ['mutation', 'instance.limit', (instanceId) => ({ instanceId, changes: { cpu: 1 } })],
      ['mutation', 'instance.limit', (cpu) => ({ instanceId: it.beta.instanceId, changes: { cpu } })],
      ['mutation', 'host.check', (hostId) => ({ hostId })],
      ['query', 'setting.history', (name) => ({ scope: { instanceId: it.beta.instanceId }, name })],
      ['query', 'setting.list', (instanceId) => ({ scope: { instanceId } })],
      ['query', 'operation.list', (cursor) => ({ cursor })],
      ['query', 'operation.show', (operationId) => ({ operationId })],
      ['query', 'incident.show', (incidentId) => ({ incidentId })],
      ['query', 'telemetry.history', (instanceId) => ({ instanceId, metric: instanceId })],
      ['mutation', 'host.add', (name) => ({ name })],
      ['mutation', 'host.revoke', (name) => ({ name, confirmName: name })],
      [
        'mutation',
        'setting.set',
        (name) => ({ scope: { instanceId: it.beta.instanceId }, changes: [{ name, value: '1' }] }),
      ],
      ['mutation', 'webhook.add', (url) => ({ url })],
      ['mutation', 'webhook.add', (text) => ({ url: `http://${text}/` })],
      ['mutation', 'standby.create', (name) => ({ cluster: 'beta', name })],
      [
        'mutation',
        'setup.complete',
        (token) => ({ token, name: 'x', email: 'x@example.org', passphrase: 'x'.repeat(20) }),
      ],
    ]
    for (const [kind, path, input] of asked)
      for (const text of odd) {
        const { status, text: said } = await call(token, kind, path, input(text))
        gotIn(
          status >= 500,
          `${path} with ${JSON.stringify(text).slice(0, 40)} answered ${status}: ${said.slice(0, 150)}`,
        )
      }
    const made = (await names()).filter((name) => !before.includes(name))
    gotIn(made.length > 0, `made: ${made.join()}`)
  })

  attempt('21', 'a sign-in with odd text is refused as any other', async () => {
    for (const text of odd) {
      const { status } = await ask('/api/auth/sign-in/email', {
        method: 'POST',
        headers: { 'content-type': 'application/json', origin: it.url },
        body: JSON.stringify({ email: `${text}@example.org`, password: `${text}-passphrase` }),
      })
      gotIn(status >= 500 || status === 200, `${JSON.stringify(text).slice(0, 40)} answered ${status}`)
    }
  })
})
