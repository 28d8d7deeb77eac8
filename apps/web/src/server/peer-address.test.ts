import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { auditAddress, isLocalPeer, PEER_HEADER, peerAddress } from './peer-address'

test('a client cannot say whom its connection comes from', async () => {
  // a server in a process of its own, made the way start.mjs does it
  const program = `
    import { PEER_HEADER } from ${JSON.stringify(join(import.meta.dirname, '../../peer-address.mjs'))}
    import { createServer, get } from 'node:http'
    const server = createServer((request, response) => response.end(JSON.stringify(request.headers[PEER_HEADER])))
    server.listen(0, '127.0.0.1', () => {
      const headers = { [PEER_HEADER]: '10.9.9.9', 'x-forwarded-for': '10.8.8.8' }
      get({ host: '127.0.0.1', port: server.address().port, headers }, (response) => {
        response.setEncoding('utf8').on('data', (text) => console.log(PEER_HEADER, text))
        response.on('end', () => server.close())
      })
    })`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program])
  expect(stdout.trim()).toBe(`${PEER_HEADER} "127.0.0.1"`)
})

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
