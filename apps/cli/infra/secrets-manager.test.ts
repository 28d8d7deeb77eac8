import { spawn, spawnSync } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

const template = join(
  import.meta.dirname,
  '../../../infra/modules/nvme_host_alicloud/token-from-secrets-manager.tftpl',
)
const here = spawnSync('python3', ['--version']).status === 0 ? '' : ' (left out: needs Python)'

/** As the cloud writes a word in what is signed: RFC 3986. */
const quoted = (text: string) =>
  encodeURIComponent(text).replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`)

/** The signature of a request by the cloud's documentation ("RPC", version 1.0). */
function signatureOf(words: Map<string, string>, secret: string): string {
  const query = [...words]
    .filter(([name]) => name !== 'Signature')
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${quoted(name)}=${quoted(value)}`)
    .join('&')
  return createHmac('sha1', `${secret}&`)
    .update(`GET&%2F&${quoted(query)}`)
    .digest('base64')
}

test('the signature is the one of the cloud’s own example', () => {
  const words = new Map(
    Object.entries({
      ...{ AccessKeyId: 'testid', Action: 'DescribeRegions', Format: 'XML', SignatureMethod: 'HMAC-SHA1' },
      ...{ SignatureNonce: '3ee8c1b8-83d3-44af-a94f-4e0ad82fd6cf', SignatureVersion: '1.0' },
      ...{ Timestamp: '2016-02-23T12:46:24Z', Version: '2014-05-26' },
    }),
  )
  expect(signatureOf(words, 'testsecret')).toBe('OLeaidS1JvxuMvnyHOwuJ+uX5qY=')
})

describe.skipIf(here !== '')(`the program that asks the secrets manager for a token${here}`, () => {
  const role = { AccessKeyId: 'STS.id', AccessKeySecret: 'key', SecurityToken: 'a+b/c==' }
  let room: string
  let server: Server
  let address: string
  let refuses: boolean

  beforeEach(async () => {
    room = mkdtempSync(join(tmpdir(), 'floe-secret-'))
    refuses = false
    // metadata service and secrets manager in one
    server = createServer((request, response) => {
      const url = new URL(request.url ?? '/', 'http://127.0.0.1')
      const answer = (status: number, text: string) => response.writeHead(status).end(text)
      if (url.pathname === '/latest/api/token')
        return answer(
          request.method === 'PUT' && request.headers['x-aliyun-ecs-metadata-token-ttl-seconds'] ? 200 : 403,
          'session',
        )
      if (url.pathname === '/latest/meta-data/ram/security-credentials/floe-host-db1')
        return answer(
          request.headers['x-aliyun-ecs-metadata-token'] === 'session' ? 200 : 403,
          JSON.stringify(role),
        )
      const words = new Map(url.searchParams)
      const good =
        words.get('Signature') === signatureOf(words, role.AccessKeySecret) &&
        words.get('SecurityToken') === role.SecurityToken &&
        words.get('Action') === 'GetSecretValue' &&
        words.get('SecretName') === 'enrolment/a+b=@1' &&
        Math.abs(Date.parse(words.get('Timestamp') ?? '') - Date.now()) < 900_000
      if (url.pathname !== '/' || !good) return answer(400, '{"Code":"SignatureDoesNotMatch"}')
      if (refuses) return answer(404, '{"Code":"Forbidden.ResourceNotFound"}')
      return answer(200, JSON.stringify({ SecretData: 'floe-token\n', SecretName: 'enrolment/a+b=@1' }))
    })
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
    address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  afterEach(() => {
    server.close()
    rmSync(room, { recursive: true, force: true })
  })

  /** Runs it as the module would put it onto a machine, but with the addresses of this test. */
  async function run() {
    let text = readFileSync(template, 'utf8')
    const values = { region: 'eu-central-1', secret: 'enrolment/a+b=@1', role: 'floe-host-db1' }
    for (const [name, value] of Object.entries(values)) text = text.replaceAll(`\${${name}}`, value)
    const program = join(room, 'program')
    expect(text).not.toMatch(/[$%]\{/)
    const moved = text
      .replace('"http://100.100.100.200/latest"', `"${address}/latest"`)
      .replace('"https://kms.eu-central-1.aliyuncs.com"', `"${address}"`)
    expect(moved.match(/127\.0\.0\.1/g)).toHaveLength(2)
    writeFileSync(program, moved)
    const child = spawn('python3', [program], { env: { PATH: process.env.PATH, no_proxy: '*' } })
    let [said, complained] = ['', '']
    child.stdout.on('data', (data) => (said += data))
    child.stderr.on('data', (data) => (complained += data))
    const status = await new Promise((done) => child.once('close', done))
    return { status, said, complained }
  }

  test('signs as the cloud wants it, and prints the token only', async () => {
    expect(await run()).toEqual({ status: 0, said: 'floe-token\n', complained: '' })
  })

  test('what the cloud refuses is told with its reason and without what was signed', async () => {
    refuses = true
    const { status, said, complained } = await run()
    expect([status, said]).toEqual([1, ''])
    expect(complained).toMatch(/^ERROR: {2}http:\S+ answered 404: .*Forbidden\.ResourceNotFound/)
    expect(complained).not.toContain('Signature')
  })

  test('without the metadata service it says so', async () => {
    // its port is free from here on
    await new Promise((done) => server.close(done))
    const { status, complained } = await run()
    expect(status).toBe(1)
    expect(complained).toMatch(/^ERROR: {2}could not reach http:\S+\/latest\/api\/token: /)
  })
})
