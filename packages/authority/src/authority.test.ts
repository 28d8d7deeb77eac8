import { X509Certificate } from 'node:crypto'
import { createServer, request } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { hostUri, rightOf, rightUri } from '@floe/domain'
import { describe, expect, test } from 'vitest'
import {
  certificateFits,
  fingerprintOf,
  identityIsGood,
  inspectCertificate,
  isDueForRenewal,
  issueClientIdentity,
  issueHostCertificate,
  issueHostIdentity,
  makeAuthority,
  makeRequest,
} from './index'

const DAY_MS = 86_400_000
const hostId = '6f1c0e56-9a39-4a3e-9b0f-0c5b1f5a0d11'

/** A server with an identity, and what it thinks of a caller. */
async function served(identity: string, authority: string) {
  const server = createServer({
    cert: identity,
    key: identity,
    ca: authority,
    requestCert: true,
    rejectUnauthorized: false,
  })
  server.on('request', (incoming, response) => {
    const { authorized } = incoming.socket as TLSSocket
    const right = rightOf((incoming.socket as TLSSocket).getPeerCertificate().subjectaltname)
    response.end(JSON.stringify({ authorized, right }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    close: () => server.close(),
    ask: (options: object) =>
      new Promise<unknown>((resolve) => {
        const r = request({ host: '127.0.0.1', port, agent: false, ...options }, (response) => {
          let text = ''
          response.setEncoding('utf8').on('data', (more: string) => {
            text += more
          })
          response.on('end', () => resolve(JSON.parse(text)))
        })
        r.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'error'))
        r.end()
      }),
  }
}

describe('what the authority signs', () => {
  test('serves at its addresses, and tells a caller’s right by its certificate', async () => {
    const authority = await makeAuthority()
    const ca = authority.certificate
    const host = await served(
      await issueHostIdentity(authority, { hostId, addresses: ['127.0.0.1', 'db-host-1'] }),
      ca,
    )
    const reader = await issueClientIdentity(authority, 'read')
    const tasker = await issueClientIdentity(authority, 'task')
    try {
      expect(await host.ask({ ca })).toEqual({ authorized: false, right: null })
      expect(await host.ask({ ca, cert: reader, key: reader })).toEqual({ authorized: true, right: 'read' })
      expect(await host.ask({ ca, cert: tasker, key: tasker })).toEqual({ authorized: true, right: 'task' })
      expect(await host.ask({ ca, servername: 'db-host-1' })).toEqual({ authorized: false, right: null })
      expect(await host.ask({ ca, servername: 'other-host' })).toBe('ERR_TLS_CERT_ALTNAME_INVALID')
      expect(await host.ask({ ca: (await makeAuthority()).certificate })).toMatch(/CERT|ISSUER|SIGNATURE/)
    } finally {
      host.close()
    }
  })

  test('a host’s certificate opens no other host, nor does a right by another authority', async () => {
    const authority = await makeAuthority()
    const ca = authority.certificate
    const identity = await issueHostIdentity(authority, { hostId, addresses: ['127.0.0.1'] })
    const host = await served(identity, ca)
    const foreign = await issueClientIdentity(await makeAuthority(), 'task')
    try {
      expect(await host.ask({ ca, cert: identity, key: identity })).toMatchObject({ authorized: false })
      expect(await host.ask({ ca, cert: foreign, key: foreign })).toMatchObject({ authorized: false })
    } finally {
      host.close()
    }
  })

  test('says of a host what the authority knows, whatever the request says', async () => {
    const authority = await makeAuthority()
    const { request: asked, key } = await makeRequest()
    const pem = await issueHostCertificate(authority, { request: asked, hostId, addresses: ['10.0.0.4'] })
    expect(inspectCertificate(pem).uris).toEqual([hostUri(hostId)])
    expect(certificateFits(pem, { authority: authority.certificate, key, uri: hostUri(hostId) })).toBe(true)
    const other = (await makeRequest()).key
    expect(certificateFits(pem, { authority: authority.certificate, key: other, uri: hostUri(hostId) })).toBe(
      false,
    )
    expect(certificateFits(pem, { authority: authority.certificate, key, uri: rightUri('task') })).toBe(false)
  })

  test('refuses what is no request, and one that was changed after it was signed', async () => {
    const authority = await makeAuthority()
    const { request: asked } = await makeRequest()
    const lines = asked.trim().split('\n')
    const der = Buffer.from(lines.slice(1, -1).join(''), 'base64')
    der[der.length - 5] = (der[der.length - 5] as number) ^ 1
    const changed = [lines[0], der.toString('base64'), lines.at(-1)].join('\n')
    for (const bad of ['', 'nonsense', authority.certificate, changed])
      await expect(issueHostCertificate(authority, { request: bad, hostId, addresses: [] })).rejects.toThrow(
        'the certificate request is not valid',
      )
  })

  test('is renewed after a third of its time, and when it says something else than it should', async () => {
    const authority = await makeAuthority()
    const identity = await issueHostIdentity(authority, { hostId, addresses: ['127.0.0.1'] })
    const wanted = { authority: authority.certificate, uri: hostUri(hostId), addresses: ['127.0.0.1'] }
    expect(identityIsGood(identity, wanted)).toBe(true)
    expect(identityIsGood(identity, { ...wanted, addresses: ['127.0.0.1', 'localhost'] })).toBe(false)
    expect(identityIsGood(identity, { ...wanted, addresses: ['10.0.0.4'] })).toBe(false)
    expect(identityIsGood(identity, { ...wanted, uri: hostUri('another') })).toBe(false)
    expect(identityIsGood(identity, { ...wanted, authority: (await makeAuthority()).certificate })).toBe(
      false,
    )
    expect(identityIsGood(identity.split('-----BEGIN PRIVATE')[0] as string, wanted)).toBe(false)
    expect(identityIsGood('', wanted)).toBe(false)
    const facts = inspectCertificate(identity)
    const third = facts.notBefore + (facts.notAfter - facts.notBefore) / 3
    expect(isDueForRenewal(facts, third - 1_000)).toBe(false)
    expect(isDueForRenewal(facts, third)).toBe(true)
  })

  test('never outlives its authority', async () => {
    const old = await makeAuthority(Date.now() - 7_295 * DAY_MS)
    const identity = await issueClientIdentity(old, 'read')
    expect(Date.parse(new X509Certificate(identity).validTo)).toBeLessThanOrEqual(
      Date.parse(new X509Certificate(old.certificate).validTo),
    )
  })

  test('an authority is named by the sha256 of its certificate', async () => {
    const { certificate } = await makeAuthority()
    expect(fingerprintOf(certificate)).toMatch(/^[0-9a-f]{64}$/)
    expect(fingerprintOf(certificate)).not.toBe(fingerprintOf((await makeAuthority()).certificate))
  })
})
