import { X509Certificate } from 'node:crypto'
import { createServer, request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { describe, expect, test } from 'vitest'
import { agentCertificateIsGood, issueAgentCertificate, makeAuthority } from './certificate'

const DAY_MS = 86_400_000

describe('the agent’s certificate', () => {
  test('is trusted by a client that knows only the installation’s authority, at 127.0.0.1 and by name', async () => {
    const authority = await makeAuthority()
    const agent = await issueAgentCertificate(authority, ['localhost', 'db-host-1'])
    const server = createServer({ key: agent.key, cert: agent.certificate }, (_, response) =>
      response.end('ok'),
    )
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const ask = (options: object) =>
      new Promise<string>((resolve) => {
        const r = request({ host: '127.0.0.1', port, ...options }, (response) => {
          response.resume()
          resolve(String(response.statusCode))
        })
        r.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'error'))
        r.end()
      })
    try {
      expect(await ask({ ca: authority.certificate })).toBe('200')
      expect(await ask({ ca: authority.certificate, servername: 'db-host-1' })).toBe('200')
      expect(await ask({ ca: authority.certificate, servername: 'other-host' })).toBe(
        'ERR_TLS_CERT_ALTNAME_INVALID',
      )
      expect(await ask({ ca: (await makeAuthority()).certificate })).not.toBe('200')
    } finally {
      server.close()
    }
  })

  test('is renewed before it ends, when the host has another name, and when the authority or the key is another one', async () => {
    const authority = await makeAuthority()
    const { certificate, key } = await issueAgentCertificate(authority, ['localhost'])
    const good = (names = ['localhost'], now = Date.now(), by = authority, k = key) =>
      agentCertificateIsGood(certificate, k, by.certificate, names, now)
    expect(good()).toBe(true)
    expect(good(['localhost', 'new-name'])).toBe(false)
    const end = Date.parse(new X509Certificate(certificate).validTo)
    expect(good(['localhost'], end - 31 * DAY_MS)).toBe(true)
    expect(good(['localhost'], end - 29 * DAY_MS)).toBe(false)
    expect(good(['localhost'], Date.now(), await makeAuthority())).toBe(false)
    const other = await issueAgentCertificate(authority, ['localhost'])
    expect(good(['localhost'], Date.now(), authority, other.key)).toBe(false)
    expect(agentCertificateIsGood('not a certificate', key, authority.certificate, [])).toBe(false)
  })

  test('never outlives its authority', async () => {
    const old = await makeAuthority(Date.now() - 7_000 * DAY_MS)
    const { certificate } = await issueAgentCertificate(old, ['localhost'])
    expect(Date.parse(new X509Certificate(certificate).validTo)).toBeLessThanOrEqual(
      Date.parse(new X509Certificate(old.certificate).validTo),
    )
  })
})
