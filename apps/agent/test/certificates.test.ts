import { randomUUID } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { agentFault, createAgentClient } from '@floe/agent-contract/client'
import { fingerprintOf, issueHostCertificate, makeRequest } from '@floe/authority'
import { secretFiles } from '@floe/domain'
import { makeTestAuthority, waitUntil } from '@floe/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { AgentFixture } from './agent-fixture'

let f: AgentFixture
beforeAll(async () => {
  f = await AgentFixture.start()
})
afterAll(() => f.remove())

/** How a call with another half of TLS than the right one ends. */
async function outcome(o: Partial<Parameters<typeof createAgentClient>[0]>): Promise<string> {
  const client = createAgentClient({ ...f.agent.home.endpoint('task'), ...o })
  try {
    await client.trpc.hello.query()
    return 'answered'
  } catch (error) {
    return agentFault(error).code
  } finally {
    await client.close()
  }
}

/** Status of a path, with or without a certificate. */
function statusOf(path: string, identity?: string, method = 'GET'): Promise<number> {
  return new Promise((resolve, reject) => {
    const { authority } = f.agent.home
    const options = { ca: authority.certificate, cert: identity, key: identity, agent: false, method }
    const asked = request(`${f.agent.home.agentUrl}${path}`, options, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    asked.on('error', reject).end()
  })
}

describe('who is answered', () => {
  test('a certificate of the installation, and no other', async () => {
    const { authority, installation } = f.agent.home
    const foreign = await makeTestAuthority()
    expect(await outcome({})).toBe('answered')
    expect(await outcome({ identity: await authority.console('read') })).toBe('answered')
    expect(await outcome({ identity: await foreign.console('task') })).toBe('agent.no_certificate')
    // a host's certificate serves; it does not call
    expect(await outcome({ identity: await authority.host(installation.hostId) })).toBe(
      'agent.no_certificate',
    )
    const past = { lifetimeMs: 60_000, now: Date.now() - 3_600_000 }
    expect(await outcome({ identity: await authority.console('task', past) })).toBe('agent.no_certificate')
  })

  test('without a certificate only /healthz, whatever is asked and however', async () => {
    expect(await statusOf('/healthz')).toBe(200)
    for (const path of ['/metrics', '/trpc/hello', '/healthz/../trpc/hello', '/anything'])
      for (const method of ['GET', 'POST'])
        expect([path, method, await statusOf(path, undefined, method)]).toEqual([path, method, 401])
    expect(await statusOf('/metrics', f.agent.home.identities.read)).toBe(200)
  })

  test('a certificate that may read starts no task and renews nothing', async () => {
    const client = createAgentClient(f.agent.home.endpoint('read'))
    const task = { kind: 'start-instance' as const, instanceId: randomUUID() as never }
    for (const attempt of [
      client.trpc.task.start.mutate({ key: f.newKey(), task }),
      client.trpc.task.cancel.mutate(f.newKey()),
      client.trpc.certificate.request.mutate(),
      client.trpc.certificate.install.mutate({ certificate: 'x' }),
    ])
      expect(
        await attempt.then(
          () => 'done',
          (error) => agentFault(error).code,
        ),
      ).toBe('agent.read_only')
    await client.close()
  })
})

describe('whom a console believes', () => {
  test('the host that is meant, of its own authority, not revoked', async () => {
    expect(await outcome({ hostId: randomUUID() })).toBe('agent.wrong_host')
    const foreign = await makeTestAuthority()
    expect(await outcome({ authority: foreign.certificate })).toBe('agent.certificate_foreign')
    const file = join(f.agent.home.home, 'secrets', secretFiles.agentIdentity)
    const own = fingerprintOf(readFileSync(file, 'utf8'))
    expect(await outcome({ isRevoked: (fingerprint) => fingerprint === own })).toBe(
      'agent.certificate_revoked',
    )
    expect(await outcome({ isRevoked: (fingerprint) => fingerprint !== own })).toBe('answered')
  })

  test('nobody whose certificate has expired', async () => {
    const { home, authority, installation } = f.agent.home
    const file = join(home, 'secrets', secretFiles.agentIdentity)
    const good = readFileSync(file, 'utf8')
    writeFileSync(
      file,
      await authority.host(installation.hostId, { lifetimeMs: 60_000, now: Date.now() - 3_600_000 }),
    )
    await f.agent.end('SIGTERM')
    f.agent.startUnseen()
    await waitUntil('it says so', async () => (await outcome({})) === 'agent.certificate_expired')
    await f.agent.end('SIGTERM')
    writeFileSync(file, good)
    await f.agent.start()
  })
})

describe('renewal', () => {
  const certificateFor = (asked: string, hostId = f.installation.hostId) =>
    issueHostCertificate(
      f.agent.home.authority.signing,
      { request: asked, hostId, addresses: ['127.0.0.1'] },
      { lifetimeMs: 86_400_000 },
    )

  test('a new key and certificate serve at once; a stream that is open goes on; both survive a kill', async () => {
    const instanceId = await f.createRunning()
    const before = (await f.read.hello.query()).certificate
    const seqs: number[] = []
    let broke: unknown = null
    const stream = f.read.telemetry.stream.subscribe(
      { instanceId: instanceId as never },
      { onData: (event) => seqs.push(event.data.seq), onError: (error) => (broke = error) },
    )
    await waitUntil('samples flow', () => seqs.length > 1)
    const client = createAgentClient(f.agent.home.endpoint('task'))
    const { request: asked } = await client.trpc.certificate.request.mutate()
    expect(await client.trpc.certificate.request.mutate()).toEqual({ request: asked })
    const pem = await certificateFor(asked)
    const installed = await client.trpc.certificate.install.mutate({ certificate: pem })
    expect(installed.fingerprint).toBe(fingerprintOf(pem))
    expect(installed.fingerprint).not.toBe(before?.fingerprint)
    const seen = seqs.length
    await waitUntil('the same stream goes on', () => seqs.length > seen + 1)
    expect(broke).toBeNull()
    expect(seqs).toEqual(Array.from({ length: seqs.length }, (_, i) => (seqs[0] as number) + i))
    stream.unsubscribe()
    // a new connection meets the new certificate, and the old one is not served any more
    expect(await outcome({ isRevoked: (fingerprint) => fingerprint === installed.fingerprint })).toBe(
      'agent.certificate_revoked',
    )
    expect(await outcome({ isRevoked: (fingerprint) => fingerprint === before?.fingerprint })).toBe(
      'answered',
    )
    await f.agent.end('SIGKILL')
    await f.agent.start()
    expect((await f.read.hello.query()).certificate?.fingerprint).toBe(installed.fingerprint)
    await client.close()
  }, 60_000)

  test('a certificate that was not asked for, of another host, or by another authority changes nothing', async () => {
    const client = createAgentClient(f.agent.home.endpoint('task'))
    const before = (await f.read.hello.query()).certificate
    const { request: asked } = await client.trpc.certificate.request.mutate()
    const foreign = await issueHostCertificate((await makeTestAuthority()).signing, {
      request: asked,
      hostId: f.installation.hostId,
      addresses: [],
    })
    for (const wrong of [
      '',
      'nonsense',
      foreign,
      await certificateFor(asked, randomUUID()),
      await certificateFor((await makeRequest()).request),
      f.agent.home.identities.task,
    ]) {
      const code = await client.trpc.certificate.install.mutate({ certificate: wrong }).then(
        () => 'taken',
        (error) => agentFault(error).code,
      )
      expect(code).toBe('certificate.unexpected')
    }
    expect((await f.read.hello.query()).certificate).toEqual(before)
    // and the request is still good
    await client.trpc.certificate.install.mutate({ certificate: await certificateFor(asked) })
    await client.close()
  })

  test('a kill between request and certificate leaves the old one in use', async () => {
    const client = createAgentClient(f.agent.home.endpoint('task'))
    const before = (await f.read.hello.query()).certificate
    const { request: asked } = await client.trpc.certificate.request.mutate()
    await f.agent.end('SIGKILL')
    await f.agent.start()
    const late = await certificateFor(asked)
    expect(
      await client.trpc.certificate.install.mutate({ certificate: late }).then(
        () => 'taken',
        (error) => agentFault(error).code,
      ),
    ).toBe('certificate.unexpected')
    expect((await f.read.hello.query()).certificate).toEqual(before)
    await client.close()
  })
})
