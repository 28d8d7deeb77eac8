import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { auditAddress, isLocalPeer, PEER_HEADER, peerAddress } from './peer-address'

/** Whom a console that trusts these proxies takes a request from 127.0.0.1 for: a process of its own, made as by start.mjs. */
async function takenFor(trustedProxies: string[], forwardedFor: string | string[] | undefined) {
  const module = (name: string) => JSON.stringify(join(import.meta.dirname, '../..', name))
  const stated = forwardedFor === undefined ? {} : { 'x-forwarded-for': forwardedFor }
  const program = `
    import { PEER_HEADER } from ${module('peer-address.mjs')}
    import { trustProxies } from ${module('trusted-proxies.mjs')}
    import { createServer, get } from 'node:http'
    trustProxies(${JSON.stringify(trustedProxies)})
    const server = createServer((request, response) => response.end(JSON.stringify(request.headers[PEER_HEADER])))
    server.listen(0, '127.0.0.1', () => {
      const headers = { [PEER_HEADER]: '10.9.9.9', ...${JSON.stringify(stated)} }
      get({ host: '127.0.0.1', port: server.address().port, headers }, (response) => {
        response.setEncoding('utf8').on('data', (text) => console.log(PEER_HEADER, text))
        response.on('end', () => server.close())
      })
    })`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program])
  const [name, address] = stdout.trim().split(' ')
  expect(name).toBe(PEER_HEADER)
  return JSON.parse(address as string)
}

test('a client cannot say whom its connection comes from', async () => {
  expect(await takenFor([], '10.8.8.8')).toBe('127.0.0.1')
  expect(await takenFor(['10.0.0.1'], '10.8.8.8')).toBe('127.0.0.1')
})

test('a trusted proxy says whom it stands for, and whatever the client had said before is not looked at', async () => {
  const proxies = ['127.0.0.1', '10.1.0.0/16', 'fd00::/64']
  const of = (forwardedFor: string | string[] | undefined) => takenFor(proxies, forwardedFor)
  expect(await of(undefined)).toBe('127.0.0.1')
  expect(await of('198.51.100.7')).toBe('198.51.100.7')
  expect(await of('10.9.9.9, 198.51.100.7')).toBe('198.51.100.7')
  // also in lines of their own, and through proxies in front of the proxy
  expect(await of(['10.9.9.9', '198.51.100.7', 'fd00::5, ::ffff:10.1.2.3'])).toBe('198.51.100.7')
  expect(await of('2001:db8::7, fd00:0:0:1::5')).toBe('fd00:0:0:1::5')
  expect(await of('10.1.0.1, 10.1.0.2')).toBe('10.1.0.1')
  // what is no address is nobody: the proxy itself is the last that is known
  expect(await of('198.51.100.7, unknown')).toBe('127.0.0.1')
  expect(await of('198.51.100.7, <script>, 10.1.0.2')).toBe('10.1.0.2')
})

test.each([['proxy.example'], ['10.0.0.0/33'], ['10.0.0.0/'], ['fd00::/129'], ['']])(
  'a proxy named %j is refused at the start',
  async (entry) => {
    await expect(takenFor([entry], undefined)).rejects.toThrow(
      `"${entry}" in "trustedProxies" of config.json is neither an address nor a network`,
    )
  },
)

test('the peer is one address however it is written, and what is none is nobody', () => {
  const of = (said: string) => peerAddress(new Headers({ [PEER_HEADER]: said }))
  expect(of('::ffff:10.0.0.7')).toBe('10.0.0.7')
  expect(of('fe80::1%eth0')).toBe('fe80::1%eth0')
  expect(of('unknown')).toBeNull()
  expect(of('<script>')).toBeNull()
  expect(['local', null, '::1', '127.0.0.1', '127.9.9.9', '10.0.0.7', '::2'].map(isLocalPeer)).toEqual([
    true,
    true,
    true,
    true,
    true,
    false,
    false,
  ])
})

test('an audit row tells the peer and what was stated apart', () => {
  const of = (peer: string | null, stated: string | null) =>
    auditAddress(
      new Headers({
        ...(peer ? { [PEER_HEADER]: peer } : {}),
        ...(stated ? { 'x-forwarded-for': stated } : {}),
      }),
    )
  expect(of('127.0.0.1', '10.0.0.7, 10.0.0.8')).toBe('127.0.0.1, stated 10.0.0.7')
  expect(of('10.0.0.7', '10.0.0.7')).toBe('10.0.0.7')
  expect(of(null, '10.0.0.7')).toBe('stated 10.0.0.7')
  expect(of('127.0.0.1', 'a very long text that is no address at all '.repeat(50))).toBe('127.0.0.1')
})
